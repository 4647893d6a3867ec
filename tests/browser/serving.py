"""Pages and files for the browser, served on this machine."""

import http.server
import threading
from pathlib import Path


class Server:
    """Serves files of some folders at http://127.0.0.1."""

    def __init__(self, *folders: Path):
        class Handler(http.server.SimpleHTTPRequestHandler):
            def translate_path(self, path):
                name = path.partition("?")[0].lstrip("/")
                return str(next((folder / name for folder in folders if (folder / name).exists()), folders[0] / name))

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
