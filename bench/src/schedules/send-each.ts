import type { RequestPlan } from "../http/load.ts";
import { openRawConnection } from "../http/raw-connection.ts";
import { requestBytes } from "../http/request-bytes.ts";

/** Number of concurrent requests. */
export const clients = 16;

/**
 * Sends a number of requests over a few connections to all addresses. Returns the milliseconds of each one,
 * in the order of the responses.
 */
export async function sendEach(options: {
  urls: readonly string[];
  count: number;
  request: (number: number) => RequestPlan;
  expectedStatus: number;
  connections?: number;
}): Promise<number[]> {
  const { urls, count, request, expectedStatus, connections = clients } = options;
  const tookMs: number[] = [];
  let next = 0;

  function sendInTurn(url: string): Promise<void> {
    const { hostname, port, host } = new URL(url);
    const { promise: ended, resolve, reject } = Promise.withResolvers<void>();
    let sentMs = 0;
    const send = () => {
      if (next >= count) return resolve();
      const bytes = requestBytes(request(next), host);
      next += 1;
      sentMs = performance.now();
      connection.send(bytes);
    };
    const connection = openRawConnection(
      { host: hostname, port: Number(port) },
      {
        onOpen: send,
        onAnswer(status, answer) {
          if (status !== expectedStatus)
            return reject(new Error(`unexpected response: ${answer.toString("utf8", 0, 500)}`));
          tookMs.push(performance.now() - sentMs);
          send();
        },
        onFailure: reject,
      },
    );
    return ended.finally(() => connection.close());
  }

  const inTurn = Array.from({ length: Math.min(connections, count) }, (_, index) =>
    sendInTurn(urls[index % urls.length] as string),
  );
  await Promise.all(inTurn);
  return tookMs;
}
