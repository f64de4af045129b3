import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findFreePort } from "@halyard/local-backends";
import { eventually } from "@halyard/testing";

/**
 * An empty server of the PostgreSQL packages of this machine, with their `pg_dump`. Like theirs, it accepts its
 * superuser without a password on its socket, and with a password over TCP.
 */
export type MachinePostgres = {
  port: number;
  /** Variables that lead `psql`, `pg_dump` and `pg_restore` to the socket. */
  variables: Readonly<Record<string, string>>;
  stop(): Promise<void>;
};

export async function startMachinePostgres(programs: string): Promise<MachinePostgres> {
  const directory = mkdtempSync(join(tmpdir(), "halyard-machine-postgres-"));
  const user = systemUser();
  if (user !== undefined) chownSync(directory, user.uid, user.gid);
  const data = join(directory, "data");
  const auth = ["--auth-local=trust", "--auth-host=scram-sha-256"];
  execFileSync(join(programs, "initdb"), ["-D", data, "-U", "postgres", "-N", ...auth], {
    ...user,
    cwd: directory,
  });
  const port = await findFreePort("127.0.0.1");
  const args = ["-D", data, "-p", `${port}`, "-k", directory, "-c", "listen_addresses=127.0.0.1"];
  const server = spawn(join(programs, "postgres"), args, {
    ...user,
    cwd: directory,
    stdio: "ignore",
  });
  const variables = { PGHOST: directory, PGPORT: `${port}`, PGUSER: "postgres" };
  await eventually(() => {
    execFileSync(join(programs, "pg_isready"), { env: variables, stdio: "ignore" });
    return true;
  });
  return {
    port,
    variables: { ...variables, PATH: `${programs}:${process.env.PATH}` },
    async stop() {
      const exited = once(server, "exit");
      server.kill("SIGINT");
      await exited;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** PostgreSQL does not run as root, so root starts it as the user that its package creates. */
function systemUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const idOf = (option: string) =>
    Number(execFileSync("id", [option, "postgres"], { encoding: "utf8" }));
  return { uid: idOf("-u"), gid: idOf("-g") };
}
