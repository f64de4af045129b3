import type { FakeEdge, Reply } from "./fake-edge.ts";

/** A network without sockets, so that a simulated day takes seconds. `fetch` reaches the edge unless the network is down. */
type InProcessNetwork = {
  fetch: typeof globalThis.fetch;
  isDown: boolean;
  /** Responses whose bodies are open. */
  readonly openBodies: number;
};

export function createNetwork(edgeFor: () => FakeEdge): InProcessNetwork {
  const bodies = new Set<Reply>();
  const network: InProcessNetwork = {
    isDown: false,
    get openBodies() {
      return bodies.size;
    },
    fetch: (input, init = {}) =>
      new Promise((resolve, reject) => {
        const { signal } = init;
        if (network.isDown) {
          reject(new TypeError("fetch failed"));
          return;
        }
        const url = new URL(String(input));
        let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
        let isOver = false;
        const closed = new Set<() => void>();

        function finish(): boolean {
          if (isOver) return false;
          isOver = true;
          bodies.delete(reply);
          signal?.removeEventListener("abort", onAbort);
          for (const callback of closed) callback();
          return true;
        }

        function fail(error: unknown): void {
          if (!finish()) return;
          reject(error);
          controller?.error(error);
        }

        const onAbort = () => fail(signal?.reason);
        const reply: Reply = {
          head(status, headers) {
            const hasBody = status !== 304 && status !== 204;
            const body = new ReadableStream<Uint8Array>({
              start(given) {
                controller = given;
              },
              cancel: () => void finish(),
            });
            bodies.add(reply);
            resolve(new Response(hasBody ? body : null, { status, headers }));
          },
          write(data) {
            if (isOver) return;
            controller?.enqueue(typeof data === "string" ? new TextEncoder().encode(data) : data);
          },
          end(text) {
            if (text !== undefined && text !== "") this.write(text);
            if (finish()) controller?.close();
          },
          destroy: () => fail(new TypeError("terminated")),
          onClose: (callback) => void closed.add(callback),
        };
        signal?.addEventListener("abort", onAbort);
        const headers = Object.fromEntries(new Headers(init.headers as Record<string, string>));
        const { method = "GET", body } = init;
        const request = {
          method,
          path: `${url.pathname}${url.search}`,
          headers,
          body: String(body ?? ""),
        };
        // A network takes at least a turn.
        setImmediate(() => {
          if (!isOver) edgeFor().handle(request, reply);
        });
      }),
  };
  return network;
}
