"""What a store holds, as a line of JSON; called by tests as a process of its own: python read_store.py NAME"""

import json
import sys

import numpy as np

from boolbert.retrieval.stores import existing_store

store = existing_store(sys.argv[1])
about = store.about()
hits = store.search(np.ones((1, about.size)), 1000)[0]
print(
    json.dumps(
        {
            "complete": about.complete,
            "count": store.count(),
            "ids": sorted(store.ids()),
            "records": sorted((record.id, record.digest, record.title, record.text) for record in store.records()),
            "vectors": sorted((hit.record.id, hit.vector.tolist()) for hit in hits),
            "held": store.held_by(["word"]) if hasattr(store, "held_by") else None,
        }
    )
)
store.close()
