import { randomBytes } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import { createSecretBox, readSecretKeys } from "../src/secrets/secret-box.ts";
import { signingSecrets } from "../src/webhooks/webhook-secrets.ts";
import { secretKey } from "./dispatcher-fixture.ts";

const boxOf = (text: string) => {
  const keys = readSecretKeys(text);
  if (keys === undefined) throw new Error("Invalid keys for secrets");
  return createSecretBox({ keys, randomBytes });
};
const [known, lost] = [boxOf(secretKey("known", 1)), boxOf(secretKey("lost", 2))];
const id = "0198a3f0-0000-7000-8000-000000000001";
const [at, later] = [new Date("2026-05-01T00:00:00Z"), new Date("2026-05-02T00:00:00Z")];

describe("a webhook with a secret of an unknown key", () => {
  it("is signed with the current secret if the key is the previous secret's, which is logged", () => {
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

  it("is not signed if the key is the current secret's", () => {
    const webhook = {
      id,
      secret: lost.seal(id, "shout"),
      previousSecret: { ...known.seal(id, "whisper"), endsAt: later },
    };
    const logger = pino({ level: "silent" });
    expect(() => signingSecrets(known, webhook, at, logger)).toThrow(/lost/);
  });
});
