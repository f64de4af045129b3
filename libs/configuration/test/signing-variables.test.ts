import { generateKeyPairSync } from "node:crypto";
import {
  listenVariables,
  readEnvironment,
  requireInProduction,
  signingPrivateKeyVariable,
  signingPublicKeysVariable,
} from "@halyard/configuration";
import { describe, expect, it } from "@jest/globals";
import { z } from "zod";

const schema = z.object({
  HALYARD_MODE: listenVariables.HALYARD_MODE,
  SIGNING_PRIVATE_KEY: signingPrivateKeyVariable,
  SIGNING_PUBLIC_KEYS: signingPublicKeysVariable,
});
const strict = requireInProduction(schema, "SIGNING_PUBLIC_KEYS");

const pair = generateKeyPairSync("ed25519");
const privateKey = pair.privateKey.export({ format: "der", type: "pkcs8" }).toString("base64");
const publicKey = pair.publicKey.export({ format: "der", type: "spki" }).toString("base64");

describe("given the variables of the signing keys", () => {
  it("reads a private key and a list of public keys", () => {
    const read = readEnvironment(schema, {
      SIGNING_PRIVATE_KEY: privateKey,
      SIGNING_PUBLIC_KEYS: `${publicKey},${publicKey}`,
    });
    expect(read.SIGNING_PRIVATE_KEY?.equals(pair.privateKey)).toBe(true);
    expect(read.SIGNING_PUBLIC_KEYS?.map((key) => key.equals(pair.publicKey))).toEqual([
      true,
      true,
    ]);
  });

  it.each([
    ["SIGNING_PRIVATE_KEY", "no key"],
    ["SIGNING_PRIVATE_KEY", publicKey],
    ["SIGNING_PUBLIC_KEYS", privateKey],
    ["SIGNING_PUBLIC_KEYS", `${publicKey},no key`],
    ["SIGNING_PUBLIC_KEYS", otherKind()],
  ])("rejects %s with another value", (name, value) => {
    expect(problemsOf(schema, { [name]: value })).toEqual([
      expect.stringContaining(`${name} must be`),
    ]);
  });

  it("requires them only in production, and names the page that describes them", () => {
    expect(problemsOf(strict, { HALYARD_MODE: "production" })).toEqual([
      expect.stringMatching(/^SIGNING_PUBLIC_KEYS is not set: .*docs\/security\.md/),
    ]);
    const given = { HALYARD_MODE: "production", SIGNING_PUBLIC_KEYS: publicKey };
    expect(problemsOf(strict, given)).toEqual([]);
    expect(problemsOf(strict, { HALYARD_MODE: "development" })).toEqual([]);
  });
});

function otherKind(): string {
  const { publicKey: rsa } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return rsa.export({ format: "der", type: "spki" }).toString("base64");
}

function problemsOf(read: z.ZodObject, env: Record<string, string>): readonly string[] {
  try {
    readEnvironment(read, env);
    return [];
  } catch (error) {
    return (error as { problems: readonly string[] }).problems;
  }
}
