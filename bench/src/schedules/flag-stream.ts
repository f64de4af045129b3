import type { Bench } from "../benchmark.ts";

/** An open event stream on an edge that records when flags changed. */
export type FlagStream = {
  /** Times by flag key, in milliseconds since 1970 like the times of schedules. */
  arrivedMs: ReadonlyMap<string, number>;
  /** Starts recording flags that change to this value, and discards earlier records. */
  expect(value: boolean): void;
};

const flagsEvent = /^event: flags\n(?:id: .*\n)?data: (.*)$/;

/** Resolves after the first events. The last of them is the heartbeat. */
export async function openFlagStream(
  bench: Bench,
  { url, key }: { url: string; key: string },
): Promise<FlagStream> {
  const closing = new AbortController();
  const response = await fetch(`${url}/api/v1/sdk/stream`, {
    headers: { authorization: `Bearer ${key}` },
    signal: closing.signal,
  });
  if (response.status !== 200 || response.body === null)
    throw new Error(`the stream: ${response.status} ${await response.text()}`);
  const arrivedMs = new Map<string, number>();
  let expected = true;
  const opened = Promise.withResolvers<void>();

  async function read(chunks: AsyncIterable<string>): Promise<void> {
    let text = "";
    for await (const chunk of chunks) {
      const nowMs = Date.now();
      const events = (text + chunk).split("\n\n");
      text = events.pop() ?? "";
      for (const event of events) take(event, nowMs);
    }
  }

  function take(event: string, nowMs: number): void {
    if (event.startsWith("event: heartbeat")) opened.resolve();
    const data = flagsEvent.exec(event)?.[1];
    if (data === undefined) return;
    const { flags } = JSON.parse(data) as { flags: Record<string, boolean> };
    // A slow reader receives all values in one event, including earlier changes.
    for (const [name, value] of Object.entries(flags))
      if (value === expected && !arrivedMs.has(name)) arrivedMs.set(name, nowMs);
  }

  const ended = read(response.body.pipeThrough(new TextDecoderStream())).catch((error: unknown) => {
    // An error before the end of the benchmark fails the waiting code.
    if (!closing.signal.aborted) throw error;
  });
  bench.afterwards(async () => {
    closing.abort();
    await ended;
  });
  await Promise.race([opened.promise, ended]);
  return {
    arrivedMs,
    expect(value) {
      expected = value;
      arrivedMs.clear();
    },
  };
}
