import { describe, expect, it } from "@jest/globals";
import { Webhook } from "standardwebhooks";
import { signatureHeaders } from "../../src/sending/outgoing.ts";

const deliveryId = "0199c7a0-0000-7000-8000-000000000001";
/** Signatures cover bytes, so non-ASCII letters, escapes and white space must not change. */
const body = '{"name":"Größe ☃ 💡", "escaped":"\\u00e9"}\n';

const sign = (
  current: string | null,
  options: { previous?: string; body?: string; at?: Date } = {},
) =>
  signatureHeaders({
    body: options.body ?? body,
    deliveryId,
    // The receiver's library accepts only recent times.
    at: options.at ?? new Date(),
    secrets: { current, previous: options.previous ?? null },
  });

const rawReceiver = (secret: string) => new Webhook(Buffer.from(secret), { format: "raw" });
const verified = JSON.parse(body);

describe("the plain signature", () => {
  // RFC 4231, 4.2 and 4.3. Its other vectors have keys or data that are not UTF-8.
  it.each([
    [
      "\v".repeat(20),
      "Hi There",
      "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
    ],
    [
      "Jefe",
      "what do ya want for nothing?",
      "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
    ],
  ])("is HMAC-SHA-256 in hexadecimal, with the key %j over %j", (secret, text, expected) => {
    expect(sign(secret, { body: text })["X-Service-Signature"]).toBe(`sha256=${expected}`);
  });

  it("does not decode a secret in the format of Standard Webhooks", () => {
    const [standard, other] = ["whsec_SmVmZQ==", "Jefe"].map(
      (secret) => sign(secret)["X-Service-Signature"],
    );
    expect(standard).not.toBe(other);
  });

  it("uses the current secret only", () => {
    const headers = sign("new", { previous: "old" });
    expect(headers["X-Service-Signature"]).toBe(sign("new")["X-Service-Signature"]);
  });
});

describe("the signature of Standard Webhooks, verified by that project's library", () => {
  it.each([
    ["a customer's own text", "any text of the customer's"],
    ["a text beyond ASCII", "Schlüssel 🔑"],
    ["one character", "x"],
    ["256 bytes", "y".repeat(256)],
    ["a prefix alone", "whsec_"],
    ["a prefix and invalid base64", "whsec_not-base64!"],
    ["a prefix and base64 of an invalid length", "whsec_abcde"],
  ])("is valid for %s", (_, secret) => {
    expect(rawReceiver(secret).verify(body, sign(secret))).toEqual(verified);
  });

  it.each([
    ["24 bytes", Buffer.alloc(24, 250).toString("base64")],
    ["64 bytes, padded", Buffer.alloc(64, 251).toString("base64")],
    ["32 bytes, not padded", Buffer.alloc(32, 9).toString("base64").replaceAll("=", "")],
  ])("is valid for a key in the format of the specification, of %s", (_, base64) => {
    const secret = `whsec_${base64}`;
    expect(new Webhook(secret).verify(body, sign(secret))).toEqual(verified);
  });

  it("is valid for the new and for the old secret during the overlap", () => {
    const old = `whsec_${Buffer.alloc(32, 1).toString("base64")}`;
    const headers = sign("new", { previous: old });
    expect(headers["webhook-signature"]?.split(" ")).toHaveLength(2);
    expect(rawReceiver("new").verify(body, headers)).toEqual(verified);
    expect(new Webhook(old).verify(body, headers)).toEqual(verified);
    expect(() => rawReceiver("neither").verify(body, headers)).toThrow("No matching signature");
  });

  it("is invalid for another body, id, time or secret", () => {
    const headers = sign("secret");
    const receiver = rawReceiver("secret");
    const later = String(Number(headers["webhook-timestamp"]) + 1);
    expect(() => receiver.verify(`${body} `, headers)).toThrow();
    expect(() => receiver.verify(body, { ...headers, "webhook-id": "other" })).toThrow();
    expect(() => receiver.verify(body, { ...headers, "webhook-timestamp": later })).toThrow();
    expect(() => rawReceiver("Secret").verify(body, headers)).toThrow();
  });

  it("comes with the delivery's id and the time of the attempt in whole seconds", () => {
    const headers = sign("secret", { at: new Date("2026-11-20T18:00:00.999Z") });
    expect(headers).toMatchObject({ "webhook-id": deliveryId, "webhook-timestamp": "1795197600" });
  });
});

describe("without a secret", () => {
  it("a request has an id and a time, but no signature", () => {
    const headers = sign(null, { at: new Date("2026-11-20T18:00:00.000Z") });
    expect(headers).toEqual({ "webhook-id": deliveryId, "webhook-timestamp": "1795197600" });
  });

  it("the previous secret does not sign either", () => {
    expect(sign(null, { previous: "old" })).not.toHaveProperty("webhook-signature");
  });
});
