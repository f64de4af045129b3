import { randomBytes } from "node:crypto";
import { inspect } from "node:util";
import { describe, expect, it } from "@jest/globals";
import {
  BrokenSecretError,
  createSecretBox,
  readSecretKeys,
  type SealedSecret,
  UnknownSecretKeyError,
} from "../../src/secrets/secret-box.ts";
import { reseal } from "../../src/webhooks/webhook-secrets.ts";

const secret = "hunter2 with a snowman ☃";
const webhook = "0199c7a0-0000-7000-8000-000000000001";
const otherWebhook = "0199c7a0-0000-7000-8000-000000000002";

function boxWith(...ids: string[]) {
  const keys = readSecretKeys(ids.map((id) => `${id}:${keyTexts[id]}`).join());
  if (keys === undefined) throw new Error("no keys");
  return createSecretBox({ keys, randomBytes });
}
const newKey = () => randomBytes(32).toString("base64");
const keyTexts: Record<string, string> = { old: newKey(), new: newKey() };

const alter = ({ bytes, keyId }: SealedSecret, at: number): SealedSecret => {
  const altered = Buffer.from(bytes);
  altered.writeUInt8(altered.readUInt8(at) ^ 1, at);
  return { bytes: altered, keyId };
};

describe("an encrypted secret", () => {
  const box = boxWith("old");
  const sealed = box.seal(webhook, secret);

  it("can be decrypted for its webhook", () => {
    expect(box.open(webhook, sealed)).toBe(secret);
  });

  it("contains the id of its key, and nothing of its text", () => {
    expect(sealed.keyId).toBe("old");
    expect(sealed.bytes.includes("hunter2")).toBe(false);
  });

  it("differs each time, so that equal secrets cannot be recognized", () => {
    expect(box.seal(webhook, secret).bytes).not.toEqual(sealed.bytes);
  });

  it.each([1, 256])("can contain %i bytes of text", (length) => {
    const text = "x".repeat(length);
    expect(box.open(webhook, box.seal(webhook, text))).toBe(text);
  });

  it("cannot be decrypted for another webhook", () => {
    expect(() => box.open(otherWebhook, sealed)).toThrow(BrokenSecretError);
  });

  it("cannot be decrypted with another key of the same name", () => {
    const keys = readSecretKeys(`old:${newKey()}`);
    if (keys === undefined) throw new Error("no keys");
    const other = createSecretBox({ keys, randomBytes });
    expect(() => other.open(webhook, sealed)).toThrow(BrokenSecretError);
  });

  it("cannot be decrypted without its key, and the error names the key", () => {
    expect(() => boxWith("new").open(webhook, sealed)).toThrow(UnknownSecretKeyError);
    expect(() => boxWith("new").open(webhook, sealed)).toThrow(/key old/);
  });

  it("cannot be decrypted if any of its bytes was changed", () => {
    for (let at = 0; at < sealed.bytes.length; at += 1)
      expect(() => box.open(webhook, alter(sealed, at))).toThrow(BrokenSecretError);
  });

  it("cannot be decrypted if it was truncated", () => {
    for (let length = 0; length < sealed.bytes.length; length += 1) {
      const cut = { bytes: sealed.bytes.subarray(0, length), keyId: "old" };
      expect(() => box.open(webhook, cut)).toThrow(BrokenSecretError);
    }
  });

  it("is not revealed by the error of a failed decryption", () => {
    const printed = inspect(
      errorOf(() => box.open(otherWebhook, sealed)),
      { depth: null },
    );
    expect(printed).not.toContain("hunter2");
    expect(printed).not.toContain(keyTexts.old);
    expect(printed).toContain(otherWebhook);
  });
});

describe("during a rotation of keys", () => {
  const sealedBefore = boxWith("old").seal(webhook, secret);
  const during = boxWith("new", "old");

  it("earlier secrets can be decrypted, and the new key encrypts", () => {
    expect(during.open(webhook, sealedBefore)).toBe(secret);
    expect(during.currentKeyId).toBe("new");
    expect(during.seal(webhook, secret).keyId).toBe("new");
  });

  it("earlier secrets are re-encrypted, and can then be decrypted without the old key", () => {
    const resealed = reseal(during, webhook, sealedBefore);
    if (resealed === undefined) throw new Error("The secret was not re-encrypted");
    expect(boxWith("new").open(webhook, resealed)).toBe(secret);
  });

  it("secrets of the new key are not re-encrypted", () => {
    expect(reseal(during, webhook, during.seal(webhook, secret))).toBeUndefined();
  });

  it("secrets that cannot be decrypted are not re-encrypted", () => {
    expect(() => reseal(during, otherWebhook, sealedBefore)).toThrow(BrokenSecretError);
    expect(() => reseal(boxWith("new"), webhook, sealedBefore)).toThrow(UnknownSecretKeyError);
  });
});

function errorOf(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  throw new Error("No error was thrown");
}
