import { useState } from "react";

const randomBytes = 16;

/** Returns a unique text. `crypto.randomUUID` does not exist on pages over plain HTTP. */
export const randomKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(randomBytes)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");

type SendOnce = <Result>(
  /** All that the request consists of. */
  content: unknown,
  send: (header: { "Idempotency-Key": string }) => Promise<Result>,
) => Promise<Result>;

/**
 * Returns a function that sends a creating request with an `Idempotency-Key`. The same content gets the same key until
 * it is sent successfully. A repetition after a lost response then returns the first response, instead of creating a
 * second resource.
 */
export function createSendOnce(newKey: () => string): SendOnce {
  let last: { content: string; key: string } | undefined;
  return async (content, send) => {
    const text = JSON.stringify(content);
    const sent = last?.content === text ? last : { content: text, key: newKey() };
    last = sent;
    const result = await send({ "Idempotency-Key": sent.key });
    if (last === sent) last = undefined;
    return result;
  };
}

export function useSendOnce(): SendOnce {
  const [sendOnce] = useState(() => createSendOnce(randomKey));
  return sendOnce;
}
