import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "@jest/globals";
import postgres from "postgres";
import { startLocalPostgres } from "../src/index.ts";
import { isRunning } from "../src/running-processes.ts";
import { runsAsRoot } from "../src/system-user.ts";
import {
  copyProject,
  endLaunchers,
  type Launched,
  launch,
  ORDINARY_USER,
  projectFor,
  thisProject,
} from "./launched.ts";
import { throwawayDirectories } from "./throwaway.ts";

const throwawayDirectory = throwawayDirectories();
afterAll(endLaunchers);

async function nameOfTable(launched: Launched): Promise<unknown> {
  const sql = postgres(launched.adminUrl, { max: 1, onnotice: () => {} });
  const rows = await sql`select to_regclass('kept') as found`;
  await sql`create table if not exists kept (id int)`;
  await sql.end();
  return rows[0]?.found;
}

/**
 * PostgreSQL does not run as root. If these tests run as root, they test root and an ordinary user; otherwise, they
 * test the current user.
 */
describe("given an ordinary user", () => {
  const open = throwawayDirectory(0o777);
  const user = runsAsRoot() ? ORDINARY_USER : undefined;
  const closed = throwawayDirectory(0o700);

  it("starts both servers as that user, keeps the data and leaves no process", async () => {
    const project = projectFor(ORDINARY_USER, throwawayDirectory());
    const options = {
      directory: open,
      cacheDir: join(open, "cache"),
      reachableDirectory: join(closed, "never"),
      project,
      ...(user && { user }),
    };
    const first = await launch(options);
    expect(await nameOfTable(first)).toBeNull();
    expect(statSync(first.clusterDir).uid).toBe(first.uid);
    await first.stop();
    expect([first.postgresPid, first.natsPid].filter(isRunning)).toEqual([]);

    const second = await launch(options);
    expect(await nameOfTable(second)).toBe("kept");
    await second.stop();
  });
});

const describeAsRoot = runsAsRoot() ? describe : describe.skip;

describeAsRoot("given root", () => {
  it("keeps the data in the directory if PostgreSQL's user can reach it", async () => {
    const open = throwawayDirectory();
    const server = await launch({
      directory: open,
      cacheDir: join(open, "cache"),
      reachableDirectory: join(open, "reachable"),
      project: thisProject,
    });

    expect(server.clusterDir).toBe(join(open, "postgres/cluster"));
    expect(statSync(`/proc/${server.postgresPid}`).uid).not.toBe(0);
    await server.stop();
  });
});

describeAsRoot(
  "given root, and a project and data in a directory that is closed to other users",
  () => {
    const closed = throwawayDirectory(0o700);
    const open = throwawayDirectory();
    const location = join(open, "reachable");
    const project = copyProject(closed, 0o700);
    const launchIn = (home: string) => {
      mkdirSync(home, { recursive: true });
      return launch({
        directory: home,
        cacheDir: join(closed, "cache"),
        reachableDirectory: location,
        project,
      });
    };

    it("copies the binaries and keeps the data where PostgreSQL's user can reach them", async () => {
      const home = join(closed, "first");
      const before = await launchIn(home);
      expect(before.clusterDir.startsWith(join(location, "data-"))).toBe(true);
      expect(statSync(before.clusterDir).mode & 0o777).toBe(0o700);
      expect(await nameOfTable(before)).toBeNull();
      await before.stop();

      const again = await launchIn(home);
      expect(again.clusterDir).toBe(before.clusterDir);
      expect(await nameOfTable(again)).toBe("kept");
      await again.stop();
    });

    it("keeps the data of a renamed home", async () => {
      const before = await launchIn(join(closed, "old-name"));
      await nameOfTable(before);
      await before.stop();
      renameSync(join(closed, "old-name"), join(closed, "new-name"));

      const renamed = await launchIn(join(closed, "new-name"));

      expect(renamed.clusterDir).toBe(before.clusterDir);
      expect(await nameOfTable(renamed)).toBe("kept");
      await renamed.stop();
    });

    it("starts empty in a new home at the path of a deleted one, and keeps the old data", async () => {
      const home = join(closed, "second");
      const before = await launchIn(home);
      await nameOfTable(before);
      await before.stop();
      rmSync(home, { recursive: true });

      const after = await launchIn(home);

      expect(await nameOfTable(after)).toBeNull();
      expect(existsSync(before.clusterDir)).toBe(true);
      await after.stop();
    });

    it("rejects a copy of a home, and reports the command to start with empty data", async () => {
      const home = join(closed, "original");
      await (await launchIn(home)).stop();
      const copy = join(closed, "copy");
      execFileSync("cp", ["-a", home, copy]);

      const link = join(copy, "postgres/cluster");
      await expect(launchIn(copy)).rejects.toThrow(`rm '${link}'`);
      rmSync(link);
      await (await launchIn(copy)).stop();
      await (await launchIn(home)).stop();
    });

    it("creates one complete copy of the binaries for concurrent starts", async () => {
      rmSync(location, { recursive: true, force: true });

      const both = await Promise.all([
        launchIn(join(closed, "third")),
        launchIn(join(closed, "fourth")),
      ]);

      expect(readdirSync(location).filter((name) => name.startsWith("postgres-"))).toHaveLength(1);
      for (const server of both) await server.stop();
    });
  },
);

describeAsRoot("given data from a start as root, and an ordinary user", () => {
  it("reports that the data belong to another user", async () => {
    const open = throwawayDirectory(0o777);
    const options = {
      directory: open,
      cacheDir: join(open, "cache"),
      reachableDirectory: join(open, "reachable"),
      project: projectFor(ORDINARY_USER, throwawayDirectory()),
    };
    await (await launch(options)).stop();
    chmodSync(join(open, "postgres"), 0o777);

    await expect(launch({ ...options, user: ORDINARY_USER })).rejects.toThrow(
      "belong to another user",
    );
  });
});

describeAsRoot("given data that belong to root", () => {
  it("reports the command that changes the owner to PostgreSQL's user", async () => {
    const dataDir = join(throwawayDirectory(), "postgres");
    mkdirSync(join(dataDir, "cluster"), { recursive: true });

    await expect(startLocalPostgres({ dataDir })).rejects.toThrow(`'${dataDir}/cluster'`);
  });
});
