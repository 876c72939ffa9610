"""Send a checked folder to the Hub, through a network that fails now and then."""

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from huggingface_hub import HfApi, get_token
from huggingface_hub.errors import HfHubHTTPError

from ..core.errors import HubError, first_line

Result = TypeVar("Result")
MESSAGE = "Upload the model with its code and card"
ATTEMPTS = 4
WAIT = 1.0  # seconds before the second attempt; doubled for each further one
NOT_ACTED_ON = (429, 503)
ADVICE = {
    401: "; log in with `hf auth login` or set HF_TOKEN",
    403: "; the token needs write access to this namespace",
}
BUSY = (*NOT_ACTED_ON, 500, 502, 504)
# The client's HTTP library differs between versions of huggingface_hub; its errors are known by name.
NOT_SENT = {"ConnectError", "ConnectTimeout", "ProxyError"}
BROKEN = NOT_SENT | {"NetworkError", "TimeoutException", "RemoteProtocolError", "ConnectionError"}


def publish(folder: Path, repo: str, *, private: bool = False, create_pr: bool = False) -> str:
    """Create the repository where there is none, upload all files in one commit, and return its address."""
    api = HfApi()
    retry(lambda: api.create_repo(repo, private=private or None, exist_ok=True), "creating the repository")

    def upload() -> str:
        info = api.upload_folder(repo_id=repo, folder_path=folder, commit_message=MESSAGE, create_pr=create_pr)
        return info.pr_url or info.commit_url

    # An upload that arrived and is sent again changes nothing, but a pull request that is sent again is opened twice.
    return retry(upload, "uploading", repeatable=not create_pr)


def retry(act: Callable[[], Result], doing: str, *, repeatable: bool = True) -> Result:
    """Call `act`, again where the network or the server failed.

    What is not repeatable is called again only where the server cannot have acted on the first call.
    """
    pauses = [WAIT * 2**attempt for attempt in range(ATTEMPTS - 1)]
    while True:
        try:
            return act()
        except Exception as error:
            reason = one_line(error)
            if not is_transient(error, repeatable):
                raise HubError(f"{doing} failed: {reason}{ADVICE.get(_status(error) or 0, '')}") from None
            if not pauses:
                raise HubError(f"{doing} failed {ATTEMPTS} times: {reason}; run it again later") from None
            pause = pauses.pop(0)
            print(f"{doing}: {reason}; trying again in {pause:.0f} s")
            time.sleep(pause)


def is_transient(error: BaseException, repeatable: bool) -> bool:
    """Whether the same call may work in a moment, and may be made again."""
    status = _status(error)
    if status is not None:
        return status in (BUSY if repeatable else NOT_ACTED_ON)
    names = {kind.__name__ for cause in _causes(error) for kind in type(cause).__mro__}
    return bool(names & (BROKEN if repeatable else NOT_SENT))


def _status(error: BaseException) -> int | None:
    for cause in _causes(error):
        if isinstance(cause, HfHubHTTPError) and getattr(cause, "response", None) is not None:
            return cause.response.status_code
    return None


def _causes(error: BaseException | None) -> list[BaseException]:
    chain: list[BaseException] = []
    while error is not None and error not in chain:
        chain.append(error)
        error = error.__cause__
    return chain


def one_line(error: BaseException) -> str:
    """The first line of what went wrong, without any token."""
    return redact(first_line(error), get_token())


def redact(text: str, token: str | None) -> str:
    """
    >>> redact("Bearer hf_abcdefghijklmnopqrstuvwxyz failed for s3cret", "s3cret")
    'Bearer *** failed for ***'
    """
    if token:
        text = text.replace(token, "***")
    return re.sub(r"\bhf_[A-Za-z0-9]{10,}", "***", text)
