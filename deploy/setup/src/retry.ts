import { retry } from "@halyard/timing";

/** Time between two attempts. */
const retryIntervalMs = 1_000;

/**
 * Repeats `work` while it fails because `server` is unavailable, for up to `timeoutMs`, because a server that starts
 * together with this command needs some seconds. Then it throws the last error. It throws any other error immediately.
 */
export async function retryWhileUnavailable<T>(
  work: () => Promise<T>,
  options: {
    server: string;
    timeoutMs: number;
    isUnavailable: (error: unknown) => boolean;
    say: (line: string) => void;
  },
): Promise<T> {
  const { server, timeoutMs, isUnavailable, say } = options;
  const deadline = performance.now() + timeoutMs;
  return retry(work, {
    backoff: { firstMs: retryIntervalMs, maxMs: retryIntervalMs },
    onFailure(error, failures) {
      if (!isUnavailable(error) || performance.now() > deadline) throw error;
      if (failures === 1) say(`${server} is unavailable, retrying: ${reasonOf(error)}`);
    },
  });
}

/**
 * Returns the message of an error, or its code if it has no message, such as a refused connection to several addresses.
 */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message || ("code" in error ? String(error.code) : error.name);
}
