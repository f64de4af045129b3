import { type RawAnswer, type RawRequest, sendRaw } from "./raw-request.ts";

/**
 * Delay of a hostile request, and of a concurrent ordinary request, compared with an ordinary request alone. Other work
 * on the machine delays all three. A request that stalls a process is slow in every attempt. Slow attempts are
 * therefore repeated, and the smallest delays count.
 */
type Disturbance = { answer: RawAnswer; hostileMs: number; ordinaryMs: number };

const maxTries = 10;

export async function disturb(
  url: string,
  hostile: RawRequest,
  { ordinary, boundMs }: { ordinary: RawRequest; boundMs: number },
): Promise<Disturbance> {
  let hostileMs = Number.POSITIVE_INFINITY;
  let ordinaryMs = Number.POSITIVE_INFINITY;
  for (let tries = 1; ; tries += 1) {
    const [answered, beside] = await Promise.all([timed(url, hostile), timed(url, ordinary)]);
    if (beside.answer.status !== 200)
      throw new Error(`the status of an ordinary request was ${beside.answer.status}`);
    const alone = await timed(url, ordinary);
    hostileMs = Math.min(hostileMs, answered.tookMs - alone.tookMs);
    ordinaryMs = Math.min(ordinaryMs, beside.tookMs - alone.tookMs);
    if (Math.max(hostileMs, ordinaryMs) < boundMs || tries === maxTries)
      return { answer: answered.answer, hostileMs, ordinaryMs };
  }
}

async function timed(
  url: string,
  asked: RawRequest,
): Promise<{ answer: RawAnswer; tookMs: number }> {
  const startedMs = performance.now();
  const answer = await sendRaw(url, asked);
  return { answer, tookMs: performance.now() - startedMs };
}
