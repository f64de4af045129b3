import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type LocalNats, startLocalNats } from "@halyard/local-backends";
import { makeCertificates, natsServerBinary } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { nkeys } from "@nats-io/transport-node";
import { connectOnce } from "../src/index.ts";

describe("given a NATS server with TLS and a user", () => {
  const directory = mkdtempSync(join(tmpdir(), "halyard-nats-tls-"));
  const { caFile, certFile, keyFile } = makeCertificates(directory);
  let server: LocalNats;
  beforeAll(async () => {
    server = await startLocalNats({
      binary: await natsServerBinary(),
      storeDir: join(directory, "store"),
      settings: [
        `tls { cert_file: "${certFile}", key_file: "${keyFile}" }`,
        'authorization { timeout: 20, users: [{ user: "edge", password: "an edge\'s password" }] }',
      ].join("\n"),
    });
  });
  afterAll(async () => {
    await server?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  const edge = { user: "edge", password: "an edge's password" };
  const connect = (nats: object) =>
    connectOnce({ nats: { url: server.url, ...nats }, name: "test" });

  it("connects with TLS as that user", async () => {
    const connection = await connect({ ...edge, tlsCaFile: caFile });
    expect(connection.info?.tls_required).toBe(true);
    await connection.close();
  });

  it.each([
    { without: "the password", nats: { user: "edge" }, trusts: true, error: /authorization/i },
    {
      without: "the right password",
      nats: { ...edge, password: "another" },
      trusts: true,
      error: /authorization/i,
    },
    { without: "the authority's certificate", nats: edge, trusts: false, error: /certificate/i },
  ])("rejects a connection without $without", async ({ nats, trusts, error }) => {
    const tlsCaFile = trusts ? caFile : undefined;
    await expect(connect({ ...nats, tlsCaFile })).rejects.toThrow(error);
  });
});

describe("given a NATS server without TLS", () => {
  it("receives no password if an authority is configured", async () => {
    const directory = mkdtempSync(join(tmpdir(), "halyard-nats-plain-"));
    const { caFile } = makeCertificates(directory);
    const server = await startLocalNats({
      binary: await natsServerBinary(),
      storeDir: join(directory, "store"),
    });
    try {
      const nats = { url: server.url, user: "edge", password: "secret", tlsCaFile: caFile };
      await expect(connectOnce({ nats, name: "test" })).rejects.toThrow(/tls/i);
    } finally {
      await server.stop();
      rmSync(directory, { recursive: true, force: true });
    }
  });
});

describe("given a NATS server with an nkey", () => {
  const directory = mkdtempSync(join(tmpdir(), "halyard-nats-nkey-"));
  const seedFile = join(directory, "user.nk");
  const user = nkeys.createUser();
  let server: LocalNats;
  beforeAll(async () => {
    writeFileSync(seedFile, `${Buffer.from(user.getSeed()).toString()}\n`);
    server = await startLocalNats({
      binary: await natsServerBinary(),
      storeDir: join(directory, "store"),
      settings: `authorization { timeout: 20, users: [{ nkey: "${user.getPublicKey()}" }] }`,
    });
  });
  afterAll(async () => {
    await server?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  it("logs in with the seed in a file", async () => {
    const nats = { url: server.url, nkeySeedFile: seedFile };
    const connection = await connectOnce({ nats, name: "test" });
    expect(connection.info?.auth_required).toBe(true);
    await connection.close();
  });

  it.each([
    { file: "no seed", content: "secret" },
    { file: "the seed of an account", content: "an account's" },
  ])("rejects a file with $file, with the name of the file", async ({ content }) => {
    const wrong = join(directory, "wrong.nk");
    const account = Buffer.from(nkeys.createAccount().getSeed()).toString();
    writeFileSync(wrong, content === "secret" ? content : account);
    const nats = { url: server.url, nkeySeedFile: wrong };
    await expect(connectOnce({ nats, name: "test" })).rejects.toThrow(wrong);
  });
});

describe("given a NATS server with accounts", () => {
  const directory = mkdtempSync(join(tmpdir(), "halyard-nats-creds-"));
  const credentialsFile = join(directory, "edge.creds");
  let server: LocalNats;
  beforeAll(async () => {
    const operator = nkeys.createOperator();
    const [account, system] = [nkeys.createAccount(), nkeys.createAccount()];
    const user = nkeys.createUser();
    const limits = {
      subs: -1,
      data: -1,
      payload: -1,
      imports: -1,
      exports: -1,
      conn: -1,
      leaf: -1,
    };
    const accounts = [account, system].map((each) => {
      const key = each.getPublicKey();
      return `${key}: "${jwt(operator, key, { type: "account", limits })}"`;
    });
    const userJwt = jwt(account, user.getPublicKey(), {
      type: "user",
      subs: -1,
      data: -1,
      payload: -1,
    });
    const seed = Buffer.from(user.getSeed()).toString();
    writeFileSync(
      credentialsFile,
      `-----BEGIN NATS USER JWT-----\n${userJwt}\n------END NATS USER JWT------\n\n` +
        `-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`,
    );
    server = await startLocalNats({
      binary: await natsServerBinary(),
      storeDir: join(directory, "store"),
      settings: [
        `operator: "${jwt(operator, operator.getPublicKey(), { type: "operator" })}"`,
        `system_account: ${system.getPublicKey()}`,
        "resolver: MEMORY",
        `resolver_preload: { ${accounts.join(", ")} }`,
      ].join("\n"),
    });
  });
  afterAll(async () => {
    await server?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  it("logs in with a credentials file", async () => {
    const connection = await connectOnce({
      nats: { url: server.url, credentialsFile },
      name: "test",
    });
    expect(connection.info?.auth_required).toBe(true);
    await connection.close();
  });

  it("rejects a file without credentials, with the name of the file", async () => {
    const empty = join(directory, "empty.creds");
    writeFileSync(empty, "");
    const nats = { url: server.url, credentialsFile: empty };
    await expect(connectOnce({ nats, name: "test" })).rejects.toThrow(empty);
  });
});

type KeyPair = ReturnType<typeof nkeys.createUser>;

/** Signs claims like nsc. */
function jwt(issuer: KeyPair, subject: string, nats: object): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const claims = {
    jti: "test",
    iat: Math.floor(Date.now() / 1_000),
    iss: issuer.getPublicKey(),
    name: "test",
    sub: subject,
    nats: { ...nats, version: 2 },
  };
  const signed = `${encode({ typ: "JWT", alg: "ed25519-nkey" })}.${encode(claims)}`;
  return `${signed}.${Buffer.from(issuer.sign(Buffer.from(signed))).toString("base64url")}`;
}

describe("given a NATS server that verifies client certificates", () => {
  it("accepts a connection with a certificate and its key, and rejects one without", async () => {
    const directory = mkdtempSync(join(tmpdir(), "halyard-nats-mutual-"));
    const { caFile, certFile, keyFile } = makeCertificates(directory);
    const server = await startLocalNats({
      binary: await natsServerBinary(),
      storeDir: join(directory, "store"),
      settings: `tls { cert_file: "${certFile}", key_file: "${keyFile}", ca_file: "${caFile}", verify: true }`,
    });
    try {
      const nats = { url: server.url, tlsCaFile: caFile };
      const own = { tlsCertFile: certFile, tlsKeyFile: keyFile };
      const connection = await connectOnce({ nats: { ...nats, ...own }, name: "test" });
      expect(connection.info?.tls_verify).toBe(true);
      await connection.close();
      await expect(connectOnce({ nats, name: "test" })).rejects.toThrow();
    } finally {
      await server.stop();
      rmSync(directory, { recursive: true, force: true });
    }
  });
});
