import { describe, expect, it } from "@jest/globals";
import { createSendOnce } from "../src/api/idempotency.ts";

/** Returns a function that sends a content and resolves with its key. A lost response rejects. */
function createSender() {
  let count = 0;
  const sendOnce = createSendOnce(() => `key-${++count}`);
  return async (content: unknown, { isLost = false } = {}): Promise<string> => {
    let key = "";
    await sendOnce(content, async (header) => {
      key = header["Idempotency-Key"];
      if (isLost) throw new Error("no response");
    }).catch(() => undefined);
    return key;
  };
}

describe("a creating request", () => {
  it("has the same key again after a lost response", async () => {
    const send = createSender();
    expect(await send({ name: "Checkout" }, { isLost: true })).toBe("key-1");
    expect(await send({ name: "Checkout" })).toBe("key-1");
  });

  it("has another key with another content, and after a response", async () => {
    const send = createSender();
    expect(await send({ name: "Checkout" }, { isLost: true })).toBe("key-1");
    expect(await send({ name: "Search" })).toBe("key-2");
    expect(await send({ name: "Search" })).toBe("key-3");
  });
});
