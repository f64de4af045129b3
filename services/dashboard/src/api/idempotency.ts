import { useRef } from "react";

const randomBytes = 16;

/** `crypto.randomUUID` does not exist on pages over plain HTTP. */
const randomKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(randomBytes)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");

/**
 * Returns a function that gives each request its `Idempotency-Key`: the same body gets the same one. A repetition after
 * a lost response then returns the first response, instead of creating a second resource.
 */
export function useIdempotencyKey(): (body: unknown) => string {
  const last = useRef({ body: "", key: "" });
  return (body) => {
    const text = JSON.stringify(body);
    if (last.current.body !== text) last.current = { body: text, key: randomKey() };
    return last.current.key;
  };
}
