import { describe, expect, it } from "@jest/globals";
import { type ConfigurationError, natsServers } from "../src/index.ts";

const NATS_URL = "nats://127.0.0.1:4222";
const readable = import.meta.filename;

function problemsOf(config: object): readonly string[] {
  try {
    natsServers({ NATS_URL, ...config });
    return [];
  } catch (error) {
    return (error as ConfigurationError).problems;
  }
}

describe("the login for NATS", () => {
  it.each([
    {},
    { NATS_USER: "edge", NATS_PASSWORD: "secret" },
    { NATS_CREDENTIALS_FILE: readable },
    { NATS_NKEY_SEED_FILE: readable },
    {
      NATS_TLS_CA_FILE: readable,
      NATS_TLS_CERT_FILE: readable,
      NATS_TLS_KEY_FILE: readable,
    },
  ])("may be %j", (config) => {
    expect(problemsOf(config)).toEqual([]);
  });

  it.each([
    [{ NATS_USER: "edge" }, "NATS_USER is set without NATS_PASSWORD: set both or neither."],
    [{ NATS_PASSWORD: "secret" }, "NATS_PASSWORD is set without NATS_USER: set both or neither."],
    [
      { NATS_TLS_CERT_FILE: readable },
      "NATS_TLS_CERT_FILE is set without NATS_TLS_KEY_FILE: set both or neither.",
    ],
    [
      { NATS_CREDENTIALS_FILE: readable, NATS_NKEY_SEED_FILE: readable },
      "Only one of NATS_CREDENTIALS_FILE and NATS_NKEY_SEED_FILE may be set: each is a complete login.",
    ],
    [
      { NATS_USER: "edge", NATS_PASSWORD: "secret", NATS_CREDENTIALS_FILE: readable },
      "Only one of NATS_USER and NATS_CREDENTIALS_FILE may be set: each is a complete login.",
    ],
    [
      { NATS_NKEY_SEED_FILE: "/nowhere" },
      "NATS_NKEY_SEED_FILE must be the path of a file that this process can read.",
    ],
  ])("is rejected as %j, with the reason", (config, problem) => {
    expect(problemsOf(config)).toEqual([problem]);
  });

  it("never appears in a message with its secret", () => {
    expect(problemsOf({ NATS_PASSWORD: "the secret" }).join()).not.toContain("the secret");
  });
});
