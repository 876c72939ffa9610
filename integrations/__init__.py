"""Bool-BERT in other frameworks and databases. Each file needs the package that it is named after, and says so.

langchain    `BoolRetriever` over any vector store, `BoolEmbeddings`
llama_index  `BoolRetriever` over any vector index, `BoolPostprocessor`, `BoolEmbedding`
haystack     `BoolTextEmbedder`, `BoolRanker`
databases    a query as the request of Qdrant, Elasticsearch, OpenSearch, pgvector or Milvus

An encoder is what `obey` returns, or a Bool-BERT opened as a SentenceTransformer.
"""
