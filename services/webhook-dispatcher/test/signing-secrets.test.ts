import { randomBytes } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import { createSecretBox, readSecretKeys } from "../src/secrets/secret-box.ts";
import { signingSecrets } from "../src/webhooks/webhook-secrets.ts";
import { secretKey } from "./dispatcher-fixture.ts";

const boxOf = (text: string) => {
  const keys = readSecretKeys(text);
  if (keys === undefined) throw new Error("These are no keys for secrets");
  return createSecretBox({ keys, randomBytes });
};
const [known, lost] = [boxOf(secretKey("known", 1)), boxOf(secretKey("lost", 2))];
const id = "0198a3f0-0000-7000-8000-000000000001";
const [at, later] = [new Date("2026-05-01T00:00:00Z"), new Date("2026-05-02T00:00:00Z")];

describe("a webhook whose key for a secret is not known", () => {
  it("is signed for with the current secret when it is the previous one's, which the log has", () => {
    const lines: string[] = [];
    const webhook = {
      id,
      secret: known.seal(id, "shout"),
      previousSecret: { ...lost.seal(id, "whisper"), endsAt: later },
    };
    const logger = pino({}, { write: (line: string) => void lines.push(line) });
    expect(signingSecrets(known, webhook, at, logger)).toEqual({
      current: "shout",
      previous: null,
    });
    expect(lines.join("")).toContain("a webhook's previous secret cannot be decrypted");
  });

  it("is not signed for when it is the current one's", () => {
    const webhook = {
      id,
      secret: lost.seal(id, "shout"),
      previousSecret: { ...known.seal(id, "whisper"), endsAt: later },
    };
    const logger = pino({ level: "silent" });
    expect(() => signingSecrets(known, webhook, at, logger)).toThrow(/lost/);
  });
});
