import { createHash, randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request as openRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { createApp } from "@halyard/http";
import { createLogger, createMetrics, type Logger } from "@halyard/service";
import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import { registerSignIn } from "../../src/keys/sign-in.ts";

/** Tests the one-time code in the sign-in link that `npm start` prints. */
const directory = mkdtempSync(join(tmpdir(), "halyard-sign-in-"));
const signInFile = join(directory, "sign-in.json");
const serverKey = "hs_aaaaaaaaaaaaaaaa_secret";

function newCode(): string {
  return randomBytes(32).toString("base64url");
}

/** Writes the file as the launcher does. Returns the code. */
function givenCode({ endsInMs = 60_000 } = {}): string {
  const code = newCode();
  const content = {
    code_sha256: createHash("sha256").update(code).digest("hex"),
    expires_at: new Date(Date.now() + endsInMs).toISOString(),
    server_key: serverKey,
  };
  writeFileSync(signInFile, JSON.stringify(content));
  return code;
}

const lines: string[] = [];
const logger: Logger = createLogger({
  service: "management",
  level: "trace",
  destination: { write: (line: string) => lines.push(line) },
});

/** Starts an application that has only the route of the sign-in. */
async function givenApp({ hasFile = true, trustedProxies = [] as string[] } = {}) {
  const metrics = createMetrics({ service: "management" });
  const app = createApp({ logger, metrics, trustedProxies, bodyLimitBytes: 10_000 });
  registerSignIn(app, { signInFile: hasFile ? signInFile : undefined });
  const port = Number(new URL(await app.listen({ host: "127.0.0.1", port: 0 })).port);
  const stop = async () => {
    app.server.closeAllConnections();
    await app.close();
  };
  return { app, port, stop };
}

const management = await givenApp();
afterAll(async () => {
  await management.stop();
  rmSync(directory, { recursive: true });
});
afterEach(() => rmSync(signInFile, { force: true }));

type Answered = { status: number | undefined; headers: Record<string, unknown>; body: unknown };

/** Sends a code. Unlike `fetch`, it can send any `Host`. */
async function signIn(
  code: unknown,
  headers: Record<string, string> = {},
  { port } = management,
): Promise<Answered> {
  const { promise, resolve, reject } = Promise.withResolvers<Answered>();
  const request = openRequest(
    { host: "127.0.0.1", port, method: "POST", path: "/dashboard/sign-in" },
    (incoming) => {
      const { statusCode: status, headers: received } = incoming;
      json(incoming).then((body) => resolve({ status, headers: received, body }), reject);
    },
  );
  request.on("error", reject);
  request.setHeader("content-type", "application/json");
  for (const [name, value] of Object.entries(headers)) request.setHeader(name, value);
  request.end(JSON.stringify({ code }));
  return promise;
}

const rejected = { status: 404, body: { error: { code: "NOT_FOUND_001" } } };

describe("given a one-time code", () => {
  it("returns the key once, and deletes the file", async () => {
    const code = givenCode();
    const answered = await signIn(code);
    expect(answered).toMatchObject({
      status: 200,
      headers: { "cache-control": "no-store" },
      body: { server_key: serverKey },
    });
    expect(existsSync(signInFile)).toBe(false);
    expect(await signIn(code)).toMatchObject(rejected);
  });

  it("returns the key to one of many simultaneous requests, at two processes", async () => {
    const other = await givenApp();
    const code = givenCode();
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => signIn(code, {}, n % 2 === 0 ? management : other)),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 404)).toHaveLength(19);
    await other.stop();
  });

  it("rejects an expired code, and deletes the file", async () => {
    expect(await signIn(givenCode({ endsInMs: -1 }))).toMatchObject(rejected);
    expect(existsSync(signInFile)).toBe(false);
  });

  it("accepts the right code after nine wrong ones, and none after ten", async () => {
    for (const { wrong, status } of [
      { wrong: 9, status: 200 },
      { wrong: 10, status: 404 },
    ]) {
      const fresh = await givenApp();
      const code = givenCode();
      for (let n = 0; n < wrong; n++)
        expect(await signIn(newCode(), {}, fresh)).toMatchObject({
          ...rejected,
          headers: { "cache-control": "no-store" },
        });
      expect(await signIn(code, {}, fresh)).toMatchObject({ status });
      await fresh.stop();
    }
  });

  it.each([undefined, 1, "", "short", "a".repeat(44), "hs_aaaaaaaaaaaaaaaa_secret"])(
    "rejects %j as invalid",
    async (code) => {
      givenCode();
      expect(await signIn(code)).toMatchObject({
        status: 400,
        body: { error: { code: "VALIDATION_001" } },
      });
      expect(existsSync(signInFile)).toBe(true);
    },
  );

  it("writes neither codes nor keys to the log", async () => {
    const codes = [givenCode(), newCode()];
    for (const code of codes.toReversed()) await signIn(code);
    await signIn("hs_aaaaaaaaaaaaaaaa_secret");
    for (const secret of [...codes, serverKey]) expect(lines.join("")).not.toContain(secret);
  });
});

describe("given a request that is not from a browser on this machine", () => {
  it.each([
    ["a name that resolves to this machine", { host: "rebound.example.com" }],
    ["a name that begins like an address of this machine", { host: "127.0.0.1.example.com" }],
    ["another origin", { origin: "https://example.com" }],
    ["another port as its origin", { origin: "http://127.0.0.1:1" }],
    ["an opaque origin", { origin: "null" }],
  ])("rejects %s, and keeps the code", async (_, headers) => {
    const code = givenCode();
    expect(await signIn(code, headers)).toMatchObject(rejected);
    expect(await signIn(code)).toMatchObject({ status: 200 });
  });

  const from = async (
    { app }: Awaited<ReturnType<typeof givenApp>>,
    remoteAddress: string,
    forwarded: string,
  ) => {
    const payload = { code: givenCode() };
    const headers = { host: "127.0.0.1", "x-forwarded-for": forwarded };
    const url = "/dashboard/sign-in";
    return (await app.inject({ method: "POST", url, payload, headers, remoteAddress })).statusCode;
  };

  it("rejects a peer that is not local, whatever its X-Forwarded-For", async () => {
    expect(await from(management, "192.0.2.1", "127.0.0.1")).toBe(404);
    expect(await from(management, "127.0.0.1", "192.0.2.1")).toBe(200);
  });

  it("uses the address that a trusted proxy forwards", async () => {
    const behindProxy = await givenApp({ trustedProxies: ["127.0.0.1"] });
    expect(await from(behindProxy, "127.0.0.1", "192.0.2.1")).toBe(404);
    expect(await from(behindProxy, "127.0.0.1", "127.0.0.1, 192.0.2.1")).toBe(404);
    expect(await from(behindProxy, "127.0.0.1", "127.0.0.1")).toBe(200);
    await behindProxy.stop();
  });

  it.each(["127.0.0.1", "localhost", "[::1]"])("accepts a page of %s", async (name) => {
    const host = `${name}:${management.port}`;
    const headers = { host, origin: `http://${host}` };
    expect(await signIn(givenCode(), headers)).toMatchObject({ status: 200 });
  });
});

describe("given no code", () => {
  it("rejects every code while the file is missing", async () => {
    expect(await signIn(newCode())).toMatchObject(rejected);
  });

  it("has no such route without a file in its settings", async () => {
    const without = await givenApp({ hasFile: false });
    givenCode();
    expect(await signIn("not even valid", {}, without)).toMatchObject(rejected);
    await without.stop();
  });
});
