import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:https";
import { type AddressInfo, connect, type LookupFunction } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findFreePort } from "@halyard/local-backends";
import { makeCertificates } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { judgeEnd } from "../src/doctor/check-certificates.ts";
import { judgeDisk } from "../src/doctor/check-disk.ts";
import { checkGateway } from "../src/doctor/check-gateway.ts";
import { judgeServer, judgeStorage } from "../src/doctor/check-nats.ts";
import { checkPostgres, judgeMigration } from "../src/doctor/check-postgres.ts";
import { clockFinding, findingsOf } from "../src/doctor/finding.ts";

const now = Date.parse("2030-01-01T00:00:00Z");

describe("given a certificate that ends", () => {
  it.each([
    ["in a year", "Jan  1 00:00:00 2031 GMT", "ok"],
    ["in three weeks", "Jan 21 23:59:59 2030 GMT", "warning"],
    ["today", "Jan  1 00:00:00 2030 GMT", "problem"],
  ])("%s", (_, validTo, status) => {
    expect(judgeEnd("flags.example.com", validTo, now)).toMatchObject({ status });
  });
});

describe("given a release whose newest migration is 0005", () => {
  it.each([
    ["0005_five", "ok"],
    ["0004_four", "problem"],
    [undefined, "problem"],
    ["0006_six", "warning"],
  ])("%s is applied", (applied, status) => {
    expect(judgeMigration("usage", applied, "0005_five")).toMatchObject({ status });
  });
});

describe("given another clock", () => {
  it.each([
    [0, "ok"],
    [-1_000, "ok"],
    [1_001, "problem"],
    [-86_400_000, "problem"],
  ])("that differs by %i ms", (offsetMs, status) => {
    expect(clockFinding("PostgreSQL", offsetMs)).toMatchObject({ status });
  });
});

describe("given a gateway with TLS", () => {
  const directory = mkdtempSync(join(tmpdir(), "halyard-doctor-"));
  const servers: Server[] = [];
  afterAll(() => {
    for (const server of servers) server.close();
    rmSync(directory, { recursive: true, force: true });
  });

  /** Starts a gateway whose certificate is valid for the given days, and returns its address. */
  async function gateway(days: number, host = "localhost"): Promise<URL> {
    const { certFile, keyFile } = makeCertificates(mkdtempSync(join(directory, "tls-")), { days });
    const tls = { cert: readFileSync(certFile), key: readFileSync(keyFile) };
    const server = createServer(tls, (_request, response) => response.end());
    servers.push(server);
    await once(server.listen(0, "127.0.0.1"), "listening");
    return new URL(`https://${host}:${(server.address() as AddressInfo).port}`);
  }

  it("reports when an expired certificate ended, and what to do", async () => {
    expect(await checkGateway(await gateway(-1), Date.now)).toEqual([
      expect.objectContaining({
        check: "gateway",
        text: "certificate has expired (CERT_HAS_EXPIRED)",
      }),
      expect.objectContaining({
        check: "certificates",
        status: "problem",
        text: expect.stringMatching(/^the certificate of localhost:\d+ ends on \d{4}-/),
        advice: expect.stringMatching(/^Renew it/),
      }),
    ]);
  });

  it.each(["localhost", "127.0.0.1"])(
    "reports why the certificate of %s is not trusted",
    async (host) => {
      expect(await checkGateway(await gateway(100, host), Date.now)).toEqual([
        expect.objectContaining({ check: "gateway", text: expect.stringContaining("(UNABLE_TO_") }),
        expect.objectContaining({ check: "certificates", status: "ok" }),
        expect.objectContaining({
          check: "certificates",
          status: "problem",
          text: expect.stringMatching(/is not trusted \(UNABLE_TO_\w+\)$/),
        }),
      ]);
    },
  );
});

describe("given a closed port", () => {
  let port: number;
  beforeAll(async () => {
    port = await findFreePort("127.0.0.1");
  });

  it("reports that the gateway refuses the connection", async () => {
    expect(await checkGateway(new URL(`http://127.0.0.1:${port}`), Date.now)).toMatchObject([
      { status: "problem", text: `connect ECONNREFUSED 127.0.0.1:${port}` },
    ]);
  });

  it("reports that PostgreSQL refuses the connection", async () => {
    const [only] = await checkPostgres(
      `postgres://halyard_doctor:secret@127.0.0.1:${port}/halyard`,
    );
    expect(only).toMatchObject({
      status: "problem",
      text: `connect ECONNREFUSED 127.0.0.1:${port}`,
    });
  });

  it("reports each address of a host that has two", async () => {
    const addresses = ["127.0.0.1", "127.0.0.2"].map((address) => ({ address, family: 4 }));
    const lookup: LookupFunction = (_host, _options, done) => done(null, addresses);
    const [only] = await findingsOf("postgresql", "Check it.", async () => {
      await once(connect({ host: "two.example", port, lookup }), "connect");
      return [];
    });
    expect(only?.text).toBe(
      `connect ECONNREFUSED 127.0.0.1:${port}; connect ECONNREFUSED 127.0.0.2:${port}`,
    );
  });
});

describe("given a disk with free space of", () => {
  it.each([
    ["a half", 500, "ok"],
    ["a tenth", 100, "ok"],
    ["9.9%", 99, "warning"],
    ["5%", 50, "warning"],
    ["4.9%", 49, "problem"],
    ["nothing", 0, "problem"],
  ])("%s", (_, bavail, status) => {
    expect(judgeDisk("/data", { bavail, blocks: 1_000, bsize: 1e9 })).toMatchObject({ status });
  });
});

describe("given JetStream with a limit of 100 GB that stores", () => {
  it.each([
    [80e9, "ok"],
    [81e9, "warning"],
    [96e9, "problem"],
  ])("%d bytes", (storage, status) => {
    expect(judgeStorage(storage, 100e9)).toMatchObject({ check: "disk", status });
  });
});

describe("given JetStream without a limit", () => {
  it("says that the disks are not checked", () => {
    const { status, text } = judgeStorage(1e12, -1);
    expect(status).toBe("ok");
    expect(text).toContain("Its account has no limit, so check the disks of NATS yourself");
  });
});

describe("given a NATS server", () => {
  it.each([
    ["2.8.4", 1, "problem"],
    ["2.9.9", 1, "problem"],
    ["2.9.10", 1, "ok"],
    ["2.9.10", 3, "warning"],
    ["2.10.29", 3, "warning"],
    ["2.11.0", 3, "ok"],
    ["3.0.0", 3, "ok"],
  ])("of version %s, and %i replicas", (version, replicas, status) => {
    expect(judgeServer({ version, replicas })).toMatchObject({ check: "nats", status });
  });
});
