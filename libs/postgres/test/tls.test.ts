import { chownSync, copyFileSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  type Certificates,
  eventually,
  makeCertificates,
  type RestartablePostgres,
  startRestartablePostgres,
} from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import postgres from "postgres";
import { connectPostgres, migrate, provisionService } from "../src/index.ts";
import { splitAddress } from "../src/tls.ts";

const logger = pino({ level: "silent" });

describe("given a URL whose sslrootcert cannot be read", () => {
  it("fails with a problem that contains the file and the parameter", () => {
    const address = "postgres://host/db?sslmode=verify-full&sslrootcert=/missing/ca.crt";
    expect(() => splitAddress(address)).toThrow(
      expect.objectContaining({
        name: "ConfigurationError",
        problems: [
          "The file /missing/ca.crt, which is sslrootcert in the database URL, cannot be read by this process.",
        ],
      }),
    );
  });
});

describe("given a PostgreSQL server with TLS", () => {
  const directory = mkdtempSync(join(tmpdir(), "halyard-postgres-tls-"));
  const certificates = makeCertificates(directory);
  const otherAuthority = makeCertificates(mkdtempSync(join(directory, "other-"))).caFile;
  let server: RestartablePostgres;
  beforeAll(async () => {
    server = await startRestartablePostgres();
    await enableTls(server, certificates);
  });
  afterAll(async () => {
    await server?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  function addressWith(parameters: Record<string, string>): string {
    const url = new URL(server.runtimeUrls.management);
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
    return url.href;
  }

  async function usesTls(url: string): Promise<unknown> {
    const sql = connectPostgres({ url, name: "test", maxConnections: 1, logger });
    try {
      const [row] = await sql`select ssl from pg_stat_ssl where pid = pg_backend_pid()`;
      return row?.ssl;
    } finally {
      await sql.end();
    }
  }

  it("connects with sslmode=verify-full and the authority's certificate in sslrootcert", async () => {
    const url = addressWith({ sslmode: "verify-full", sslrootcert: certificates.caFile });
    expect(await usesTls(url)).toBe(true);
  });

  it("connects with sslmode=require without checking the certificate", async () => {
    expect(await usesTls(addressWith({ sslmode: "require" }))).toBe(true);
  });

  it.each(["verify-full", "require"])(
    "rejects a server that another authority signed, with sslmode=%s",
    async (sslmode) => {
      const url = addressWith({ sslmode, sslrootcert: otherAuthority });
      await expect(usesTls(url)).rejects.toThrow(/certificate|signature/);
    },
  );

  it("prepares schemas and roles, and migrates, over TLS", async () => {
    const adminUrl = new URL(server.adminUrl);
    adminUrl.searchParams.set("sslmode", "verify-full");
    adminUrl.searchParams.set("sslrootcert", certificates.caFile);
    const { ownerUrl, runtimeUrl } = await provisionService({
      adminUrl: adminUrl.href,
      database: "halyard",
      service: "over_tls",
      ownerPassword: "owner-password",
      runtimePassword: "runtime-password",
    });
    expect(await usesTls(runtimeUrl)).toBe(true);
    const directory = fileURLToPath(new URL("provision-migrations", import.meta.url));
    const applied = await migrate({ ownerUrl, schema: "over_tls", directory });
    expect(applied).not.toEqual([]);
  });
});

/** Enables TLS, and waits until new connections can use it. */
async function enableTls(
  { adminUrl, clusterDir }: RestartablePostgres,
  { certFile, keyFile }: Certificates,
): Promise<void> {
  const { uid, gid } = statSync(clusterDir);
  for (const [from, to] of [
    [certFile, "server.crt"],
    [keyFile, "server.key"],
  ] as const) {
    copyFileSync(from, join(clusterDir, to));
    chownSync(join(clusterDir, to), uid, gid);
  }
  const sql = postgres(adminUrl, { max: 1, onnotice: () => undefined });
  await sql`alter system set ssl = on`;
  await sql`select pg_reload_conf()`;
  await sql.end();
  await eventually(async () => {
    const probe = postgres(adminUrl, { max: 1, ssl: { rejectUnauthorized: false } });
    const isReady = await probe`select 1`.then(
      () => true,
      () => false,
    );
    await probe.end();
    return isReady;
  });
}
