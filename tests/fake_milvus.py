"""A server of Milvus: Milvus Lite, behind a front that can give other answers than it does."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc
from milvus_lite.server_manager import ServerManager


class Front(grpc.GenericRpcHandler):
    """`calls` are the methods that were called.

    instead: gives what is answered to the n-th call since `calls` was emptied: bytes, a status, or None. after: the
    same, once the call was carried out.
    """

    def __init__(self, channel):
        self.channel, self.calls = channel, []
        self.instead = self.after = lambda number: None

    def service(self, details):
        call = self.channel.unary_unary(details.method)

        def answer(request, context):
            self.calls.append(details.method.rpartition("/")[2])
            number = len(self.calls)
            other = self.instead(number)
            if other is None:
                try:
                    answered = call(request, metadata=context.invocation_metadata())
                except grpc.RpcError as error:  # Milvus Lite has not all of the methods, and its client knows that
                    context.abort(error.code(), error.details())
                other = self.after(number)
                if other is None:
                    return answered
            if isinstance(other, grpc.StatusCode):
                context.abort(other, "not you")
            return other

        return grpc.unary_unary_rpc_method_handler(answer)


@contextmanager
def fake_milvus(folder):
    """A running server: its address, and its state. folder: of its documents."""
    lite = ServerManager()
    with grpc.insecure_channel(lite.start_and_get_uri(str(folder)).removeprefix("http://")) as channel:
        state, front = Front(channel), grpc.server(ThreadPoolExecutor(4))
        front.add_generic_rpc_handlers((state,))
        port = front.add_insecure_port("127.0.0.1:0")
        front.start()
        try:
            yield f"http://127.0.0.1:{port}", state
        finally:
            front.stop(None)
            lite.release_all()
