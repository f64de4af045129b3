import type { LookupAddress } from "node:dns";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import {
  createCheckedLookup,
  createPublicResolver,
  type ResolveName,
} from "../../src/sending/names.ts";
import { createAgents, post } from "../../src/sending/post.ts";
import { createSend, logAddressNotAllowed } from "../../src/sending/send.ts";
import { startNameServer } from "./name-server.ts";
import { answerOk, createClosing, startRawTarget } from "./raw-target.ts";

/** Name resolution, and the guarantee that connections use only the checked addresses. */
const { closing, closeAll } = createClosing();
afterEach(closeAll);

const addresses = (...list: string[]): LookupAddress[] =>
  list.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
const failing = (code: string): ResolveName => {
  return () => Promise.reject(Object.assign(new Error("no"), { code }));
};
/** The error for unknown names and for private addresses. */
const nowhere = "the name does not lead to a public address";
const rejected = { kind: "failed", error: "address not allowed", timedOut: false };

async function sendWith(options: {
  resolve?: ResolveName;
  allowPrivate?: boolean;
  timeoutMs?: number;
}) {
  const target = closing(await startRawTarget({ onRequest: answerOk }));
  const { allowPrivate = false, ...others } = options;
  const sender = closing(
    createSend({
      rules: { httpsOnly: false, allowPrivate },
      ...others,
    }),
  );
  const send = (host = "receiver.test") =>
    sender.send({ url: `http://${host}:${target.port}/`, headers: {}, body: "{}" });
  return { send, target };
}

describe("a name", () => {
  it.each([
    ["a private address", ["127.0.0.1"]],
    ["a public and a private address", ["93.184.215.14", "127.0.0.1"]],
    ["a private and a public address", ["127.0.0.1", "93.184.215.14"]],
    ["a public address and a private one of IPv6", ["93.184.215.14", "::1"]],
    ["an IPv4-mapped address", ["::ffff:127.0.0.1"]],
    ["a cloud's metadata", ["169.254.169.254"]],
  ])("that resolves to %s is rejected", async (_, found) => {
    const { send, target } = await sendWith({ resolve: async () => addresses(...found) });
    const result = await send();
    expect(result).toMatchObject({ kind: "failed", error: nowhere, timedOut: false });
    expect(target.connections).toHaveLength(0);
    const lines: string[] = [];
    logAddressNotAllowed(
      result,
      "the-webhook",
      pino({}, { write: (line) => void lines.push(line) }),
    );
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({ webhook_id: "the-webhook" });
    expect(lines[0]).not.toContain("receiver.test");
  });

  it("that resolves to a private address is accepted if the rules allow it", async () => {
    const resolve = async () => addresses("127.0.0.1");
    const { send } = await sendWith({ resolve, allowPrivate: true });
    expect(await send()).toMatchObject({ kind: "answered", status: 200 });
  });

  it("of the local machine resolves in development", async () => {
    const { send } = await sendWith({ allowPrivate: true });
    expect(await send("localhost")).toMatchObject({ kind: "answered", status: 200 });
  });

  it.each([
    ["ENOTFOUND", nowhere, false],
    ["ENODATA", nowhere, false],
    ["ESERVFAIL", "name look-up failed", false],
    ["EAI_AGAIN", "name look-up failed", false],
    // From a name server, not from the target.
    ["ECONNREFUSED", "name look-up failed", false],
    ["ETIMEOUT", "name look-up timed out", true],
  ])("whose lookup ends with %s fails: %s", async (code, error, timedOut) => {
    const { send } = await sendWith({ resolve: failing(code) });
    expect(await send()).toMatchObject({ kind: "failed", error, timedOut });
  });

  it("without addresses fails", async () => {
    const { send } = await sendWith({ resolve: async () => [] });
    expect(await send()).toMatchObject({ error: nowhere });
  });

  it("whose lookup hangs fails at the time limit", async () => {
    const resolve = () => new Promise<never>(() => undefined);
    const { send } = await sendWith({ resolve, timeoutMs: 1_000 });
    expect(await send()).toMatchObject({ error: "time-out after 1 s", timedOut: true });
  });
});

describe("an address in the URL", () => {
  it.each(["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::1]", "[::ffff:7f00:1]"])(
    "is rejected without a lookup or a connection: %s",
    async (host) => {
      const lookUps: string[] = [];
      const { send, target } = await sendWith({
        async resolve(name) {
          lookUps.push(name);
          return addresses("93.184.215.14");
        },
      });
      expect(await send(host)).toMatchObject(rejected);
      expect(lookUps).toEqual([]);
      expect(target.connections).toEqual([]);
    },
  );

  it.each(["receiver.test:6379", "127.0.0.1:25", "[::1]:11211"])(
    "is rejected without a lookup if its port is blocked: %s",
    async (host) => {
      const lookUps: string[] = [];
      const resolve = async (name: string) => {
        lookUps.push(name);
        return addresses("127.0.0.1");
      };
      const rules = { httpsOnly: false, allowPrivate: true };
      const sender = closing(createSend({ rules, resolve }));
      const request = { url: `http://${host}/`, headers: {}, body: "{}" };
      expect(await sender.send(request)).toMatchObject(rejected);
      expect(lookUps).toEqual([]);
    },
  );

  it("is rejected with http if the rules require https", async () => {
    const sender = closing(createSend({ rules: { httpsOnly: true, allowPrivate: true } }));
    const url = "http://127.0.0.1:2/";
    expect(await sender.send({ url, headers: {}, body: "{}" })).toMatchObject(rejected);
  });

  it("cannot be a Unix domain socket, although got supports them in URLs", async () => {
    const path = join(tmpdir(), `halyard-${process.pid}.sock`);
    const inside = closing(await startRawTarget({ onRequest: answerOk, path }));
    const sender = closing(createSend({ rules: { httpsOnly: false, allowPrivate: true } }));
    const url = `http://unix${path}:/`;
    expect(await sender.send({ url, headers: {}, body: "{}" })).toMatchObject({ kind: "failed" });
    expect(inside.connections).toEqual([]);
  });
});

/** All addresses of 127.0.0.0/8 are local. One of them stands for a public address here. */
describe("a name that changes between two lookups", () => {
  const publicOne = "127.0.0.1";
  const privateOne = "127.0.0.2";

  async function rebinding() {
    const [target, inside] = await startAtBoth(publicOne, privateOne);
    let lookUps = 0;
    const lookup = createCheckedLookup({
      resolve: async () => addresses(lookUps++ === 0 ? publicOne : privateOne),
      isAllowed: (address) => address === publicOne,
    });
    const url = new URL(`http://changing.test:${target.port}/`);
    const send = (agents: ReturnType<typeof createAgents>) =>
      post({ url, headers: {}, body: "{}" }, { agents, lookup, signal: neverAborted });
    return { send, target, inside, lookUps: () => lookUps };
  }
  const neverAborted = new AbortController().signal;

  async function startAtBoth(...hosts: [string, string]) {
    const first = closing(await startRawTarget({ onRequest: answerOk, host: hosts[0] }));
    const { port } = first;
    const second = closing(await startRawTarget({ onRequest: answerOk, host: hosts[1], port }));
    return [first, second] as const;
  }
  function agentsOfTest() {
    const agents = createAgents();
    closing({
      async close() {
        agents.destroy();
      },
    });
    return agents;
  }

  it("uses the checked address for the connection", async () => {
    const { send, target, inside, lookUps } = await rebinding();
    expect(await send(agentsOfTest())).toMatchObject({ status: 200 });
    expect(lookUps()).toBe(1);
    expect(target.connections).toHaveLength(1);
    expect(inside.connections).toHaveLength(0);
  });

  it("is checked again for the next connection", async () => {
    const { send, inside } = await rebinding();
    await send(agentsOfTest());
    await expect(send(agentsOfTest())).rejects.toMatchObject({ code: "ERR_ADDRESS_NOT_ALLOWED" });
    expect(inside.connections).toHaveLength(0);
  });

  it("keeps using the connection to the checked address", async () => {
    const { send, target, lookUps } = await rebinding();
    const agents = agentsOfTest();
    await send(agents);
    await send(agents);
    expect(lookUps()).toBe(1);
    expect(target.connections).toHaveLength(1);
  });
});

function namesOf(server: { address: string }) {
  const names = createPublicResolver([server.address]);
  closing({ close: async () => names.close() });
  return names;
}

describe("the resolver", () => {
  it("queries the name servers for IPv4 and IPv6 addresses", async () => {
    const server = closing(
      await startNameServer({ "receiver.test": ["93.184.215.14", "127.0.0.1"] }),
    );
    const names = namesOf(server);
    const found = await names.resolve("receiver.test");
    expect(found.map(({ address }) => address).sort()).toEqual(["127.0.0.1", "93.184.215.14"]);
    expect(server.questions.sort()).toEqual(["receiver.test 1", "receiver.test 28"]);
  });

  it("reports an unknown name and a name without addresses", async () => {
    const server = closing(await startNameServer({ "empty.test": [] }));
    const names = namesOf(server);
    await expect(names.resolve("absent.test")).rejects.toMatchObject({ code: "ENOTFOUND" });
    await expect(names.resolve("empty.test")).rejects.toMatchObject({ code: "ENODATA" });
  });

  it("does not wait for a name server that never responds to IPv6 queries", async () => {
    const server = closing(await startNameServer({ "receiver.test": ["93.184.215.14"] }));
    server.ignore(28);
    const names = namesOf(server);
    expect(await names.resolve("receiver.test")).toEqual(addresses("93.184.215.14"));
    // The resolver repeats the query only after the name is resolved.
    expect(server.questions.filter((question) => question.endsWith(" 28"))).toHaveLength(1);
  });

  it("resolves a name while a name server does not respond for many others", async () => {
    const server = closing(
      await startNameServer({ "dead.test": "hangs", "receiver.test": ["93.184.215.14"] }),
    );
    const names = namesOf(server);
    let ended = 0;
    const dead = Array.from({ length: 50 }, () =>
      names.resolve("dead.test").catch(() => {
        ended += 1;
      }),
    );
    expect(await names.resolve("receiver.test")).toHaveLength(1);
    expect(ended).toBe(0);
    names.close();
    await Promise.all(dead);
  });
});

describe("a fast name server", () => {
  it("gets enough time for a name whose authoritative servers are slow", async () => {
    const server = closing(
      await startNameServer({ "near.test": ["93.184.215.14"], "far.test": ["93.184.215.14"] }),
    );
    const names = namesOf(server);
    for (let count = 0; count < 10; count += 1) await names.resolve("near.test");
    // Real time, because c-ares has no clock to replace. With its default settings it would give up sooner.
    server.delay("far.test", 3_000);
    expect(await names.resolve("far.test")).toHaveLength(1);
  });
});
