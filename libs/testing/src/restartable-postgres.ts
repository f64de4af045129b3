import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type LocalPostgres, startLocalPostgres } from "@halyard/local-backends";
import { removeTemporary } from "./releases.ts";
import { prepareTemplate, type RuntimeUrls } from "./template-database.ts";

/** A PostgreSQL server of one test file, which can be killed and started again with the same address and data. */
export type RestartablePostgres = {
  adminUrl: string;
  runtimeUrls: RuntimeUrls;
  /** Directory of the data. */
  clusterDir: string;
  logFile: string;
  kill(): Promise<void>;
  start(): Promise<void>;
  stop(): Promise<void>;
};

/** Starts a durable server, as in production, because committed data must survive a kill. */
export async function startRestartablePostgres(): Promise<RestartablePostgres> {
  const dataDir = mkdtempSync(join(tmpdir(), "halyard-test-postgres-"));
  let server: LocalPostgres = await startLocalPostgres({ dataDir, throwaway: true });
  const { port, clusterDir, logFile } = server;
  const runtimeUrls = await prepareTemplate(server.adminUrl, "halyard");
  const adminUrl = new URL(server.adminUrl);
  adminUrl.pathname = "/halyard";
  return {
    adminUrl: adminUrl.href,
    runtimeUrls,
    clusterDir,
    logFile,
    async kill() {
      process.kill(server.pid, "SIGKILL");
      await server.exited;
    },
    async start() {
      server = await startLocalPostgres({ dataDir, port, throwaway: true });
    },
    async stop() {
      await server.stop();
      removeTemporary(dataDir);
    },
  };
}
