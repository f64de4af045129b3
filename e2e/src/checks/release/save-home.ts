import { execFile } from "node:child_process";
import { copyFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { databaseName, fixtureFiles, homeFiles, withDatabaseOf } from "./release-fixture.ts";

const run = promisify(execFile);

/** Image with the `pg_dump` of PostgreSQL's major version, which npm does not provide. */
const image = "postgres:18";
const largestDump = 64 * 1024 * 1024;

/** Saves the data of a home that is not in use. */
export async function saveHome(home: string, folder: string): Promise<void> {
  await withDatabaseOf(home, async (server) => {
    const { host, port, superuser, password } = server;
    const dump = async (program: string, ...args: string[]) => {
      const connection = ["--host", host, "--port", String(port), "--username", superuser];
      const container = ["run", "--rm", "--network", "host", "--env", `PGPASSWORD=${password}`];
      const { stdout } = await run(
        "docker",
        [...container, "--entrypoint", program, image, ...connection, ...args],
        { maxBuffer: largestDump },
      );
      return stdout;
    };
    // A new cluster already has the superuser.
    const roles = withoutMetaCommands(await dump("pg_dumpall", "--roles-only"))
      .filter((line) => !line.includes(` ROLE ${superuser}`))
      .join("\n");
    const content = withoutMetaCommands(await dump("pg_dump", "--inserts", databaseName));
    const sql = `${roles}\n${content.join("\n")}`;
    await writeFile(join(folder, fixtureFiles.database), gzipSync(sql, { level: 9 }));
  });
  const nats = join(home, homeFiles.nats);
  await run("tar", ["-czf", join(folder, fixtureFiles.nats), "-C", nats, "jetstream"]);
  await copyFile(join(home, homeFiles.cache), join(folder, fixtureFiles.cache));
  await copyFile(join(home, homeFiles.credentials), join(folder, fixtureFiles.credentials));
}

/** Removes meta-commands such as `\restrict`, which only psql supports. */
function withoutMetaCommands(dump: string): string[] {
  return dump.split("\n").filter((line) => !line.startsWith("\\"));
}
