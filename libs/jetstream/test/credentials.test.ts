import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type LocalNats, startLocalNats } from "@halyard/local-backends";
import { makeCertificates, natsServerBinary } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
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
        'authorization { users: [{ user: "edge", password: "an edge\'s password" }] }',
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

  it("connects by TLS as that user", async () => {
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
  it("sends no password to it when an authority is configured", async () => {
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
