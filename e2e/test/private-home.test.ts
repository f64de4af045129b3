import { call, eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import "../src/system/patience.ts";
import { filesWritten } from "../src/checks/left-behind.ts";
import { createMarks, findTraces, needlesFor, type Place } from "../src/checks/traces.ts";
import { type Launched, launch } from "../src/system/launched.ts";
import { must } from "../src/system/tenancy.ts";
import { markedRequests } from "../src/traffic/marked-requests.ts";
import { sendRaw } from "../src/traffic/raw-request.ts";

/**
 * The same as for single processes, for everything as one starts it at home: PostgreSQL, NATS and all
 * services with their logs keep all that they keep below one directory.
 */
const flagKey = "checkout";
const marks = createMarks();
const planted = createMarks().next();

describe("given a home in which everything has run, and requests with marked users", () => {
  let launched: Launched;
  let files: Place[];
  const complaints: string[] = [];

  beforeAll(async () => {
    launched = await launch({ LOG_LEVEL: "trace" });
    const { base_url: url, client_key: client, server_key: server } = launched.demo;
    const conditions = [{ attribute: "email", operator: "equals", value: planted }];
    await must(`${url}/api/v1/flags`, {
      method: "POST",
      key: server,
      headers: { "x-request-id": planted },
      body: { key: flagKey, name: "Checkout", enabled: true, targeting_rules: [{ conditions }] },
    });
    await eventually(async () => {
      const { body } = await call(`${url}/api/v1/sdk/flags`, { key: client });
      return flagKey in body.flags;
    });
    for (const { what, asked, status } of markedRequests(marks, {
      client,
      server,
      flag: flagKey,
    })) {
      const answer = await sendRaw(url, asked);
      if (answer.status !== status) complaints.push(`${what}: ${answer.status} ${answer.text}`);
    }
    expect(await launched.stop()).toBe(0);
    files = [...filesWritten([launched.home], 0)];
  });
  afterAll(() => launched?.remove());

  it("has answered every request as it was meant to", () => {
    expect(complaints).toEqual([]);
  });

  it("has left nothing of a user in any file, nor printed it", () => {
    const printed = { name: "what was printed", content: launched.output() };
    expect(marks.traces([...files, printed])).toEqual([]);
  });

  it.each(["postgres", "nats", "sdk-edge", "management.log"])(
    "would have found it in %s",
    (part) => {
      const found = findTraces(
        files.filter(({ name }) => name.includes(part)),
        needlesFor([planted]),
      );
      expect(found).not.toEqual([]);
    },
  );
});
