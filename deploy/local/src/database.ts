import { join } from "node:path";
import { readLogTail, startBackgroundProcess } from "@halyard/local-backends";
import { provisionService } from "@halyard/postgres";
import type { Credentials } from "./credentials.ts";
import { StartError } from "./start-error.ts";

export const DATABASE = "halyard";

export type DatabaseUrls = { ownerUrl: string; runtimeUrl: string };

/** Makes database, roles and schema, with the passwords of this home. */
export async function prepareDatabase(options: {
  adminUrl: string;
  credentials: Credentials;
}): Promise<DatabaseUrls> {
  const { adminUrl, credentials } = options;
  try {
    return await provisionService({
      adminUrl,
      database: DATABASE,
      service: "management",
      ownerPassword: credentials.owner_password,
      runtimePassword: credentials.runtime_password,
    });
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new StartError(
      `The database could not be prepared at ${new URL(adminUrl).host}: ${reason}. ` +
        "The role in POSTGRES_URL must be able to create roles and databases.",
      { cause },
    );
  }
}

/** Runs the migrations as the command that production uses, in a process of its own. */
export async function migrate(options: {
  projectDir: string;
  logsDir: string;
  ownerUrl: string;
}): Promise<void> {
  const migration = await startBackgroundProcess({
    command: process.execPath,
    args: [join(options.projectDir, "services/management/src/migrate.ts")],
    logFile: join(options.logsDir, "migrate.log"),
    workingDirectory: options.projectDir,
    environment: { POSTGRES_OWNER_URL: options.ownerUrl },
    stopSteps: [],
  });
  const status = await migration.exited;
  if (status.code === 0) return;
  const lines = readLogTail(migration.logFile, 10).map((line) => `\n  ${line}`);
  throw new StartError(`The migrations failed (${migration.logFile}):${lines.join("")}`);
}
