import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type LocalPostgres, startLocalPostgres, startReaper } from "@halyard/local-backends";
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
  const reaper = startReaper();
  const dataDir = mkdtempSync(join(tmpdir(), "halyard-test-postgres-"));
  reaper.removeAfterwards(dataDir);
  let server: LocalPostgres = await startLocalPostgres({ dataDir, reaper });
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
      server = await startLocalPostgres({ dataDir, port, reaper });
    },
    async stop() {
      await server.stop();
      await reaper.close();
      removeTemporary(dataDir);
    },
  };
}
