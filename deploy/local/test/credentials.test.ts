import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { StartError } from "@halyard/local-backends";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { loadCredentials } from "../src/credentials.ts";

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "halyard-credentials-"));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const file = () => join(home, "credentials.json");
const kept = () => JSON.parse(readFileSync(file(), "utf8")) as unknown;

describe("given a home that was never started", () => {
  it("creates a different value for every secret, in a file that only its owner can read", () => {
    const made = loadCredentials(home);
    const { nats_passwords, ...others } = made;
    expect(Object.keys(nats_passwords)).toContain("sdk-edge");
    const secrets = [...Object.values(others), ...Object.values(nats_passwords)];
    expect(Object.keys(made)).toContain("stream_token_secret");
    expect(new Set(secrets).size).toBe(secrets.length);
    for (const secret of secrets) expect(secret).toMatch(/^[\w-]{43}$/);
    expect(kept()).toEqual(made);
    expect(statSync(file()).mode & 0o077).toBe(0);
  });

  it("has the same secrets on the next start", () => {
    expect(loadCredentials(home)).toEqual(loadCredentials(home));
  });
});

describe("given a home that lacks some of the secrets", () => {
  it("creates those, keeps the other secrets and the demo's keys, and is the same on the next start", () => {
    const { operator_token, owner_password, runtime_password } = loadCredentials(home);
    const demo = { client_key: "hc_…" };
    const old = { operator_token, owner_password, runtime_password, demo };
    writeFileSync(file(), JSON.stringify(old));
    const loaded = loadCredentials(home);
    expect(loaded).toEqual({
      ...old,
      scheduler_owner_password: expect.stringMatching(/^[\w-]{43}$/),
      scheduler_runtime_password: expect.stringMatching(/^[\w-]{43}$/),
      scheduler_signing_seed: expect.stringMatching(/^[\w-]{43}$/),
      webhook_dispatcher_signing_seed: expect.stringMatching(/^[\w-]{43}$/),
      stream_token_secret: expect.stringMatching(/^[\w-]{43}$/),
      signing_seed: expect.stringMatching(/^[\w-]{43}$/),
      webhook_secret_key: expect.stringMatching(/^[\w-]{43}$/),
      webhooks_owner_password: expect.stringMatching(/^[\w-]{43}$/),
      webhooks_runtime_password: expect.stringMatching(/^[\w-]{43}$/),
      usage_owner_password: expect.stringMatching(/^[\w-]{43}$/),
      usage_runtime_password: expect.stringMatching(/^[\w-]{43}$/),
      doctor_password: expect.stringMatching(/^[\w-]{43}$/),
      nats_passwords: expect.objectContaining({ setup: expect.stringMatching(/^[\w-]{43}$/) }),
    });
    expect(loadCredentials(home)).toEqual(loaded);
  });
});

describe("given a credentials file that is not valid JSON", () => {
  it("fails with an error for the user", () => {
    writeFileSync(file(), "{");
    expect(() => loadCredentials(home)).toThrow(StartError);
  });
});
