import { randomUUID } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readlinkSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { hasCode, readIfPresent, unlessAbsent } from "./files.ts";
import { StartError } from "./start-error.ts";
import { findUnprivilegedUser, runsAsRoot, type SystemUser, userCan } from "./system-user.ts";

/** The files of a server, and the user that it runs as; undefined for the current user. */
export type PostgresHome = {
  clusterDir: string;
  logFile: string;
  passwordFile: string;
  user: SystemUser | undefined;
};

/** File with the path of the home that a data directory belongs to. A copy of a home is detected by it. */
const HOME_FILE = "home";

type HomeOptions = { dataDir: string; location: string; onStep: (text: string) => void };

/**
 * Selects the directory of the data and their owner. `dataDir` contains the log, the superuser's password and the data,
 * in `cluster`. If root starts PostgreSQL, the data belong to another user. If that user cannot reach `dataDir`, the
 * data are in `location`, and `cluster` is a symbolic link to them.
 *
 * @throws StartError if the data belong to another user or cannot be reached
 */
export function settlePostgresHome(options: HomeOptions): PostgresHome {
  const { dataDir } = options;
  mkdirSync(dataDir, { recursive: true, mode: runsAsRoot() ? 0o711 : 0o700 });
  const user = runsAsRoot() ? userForRoot(options) : undefined;
  const clusterDir = linkedCluster(dataDir) ?? join(dataDir, "cluster");
  const owner = ownerOf(clusterDir);
  if (user === undefined && owner !== undefined && owner.uid !== process.getuid?.()) {
    throw new StartError(
      `The data in ${clusterDir} belong to another user. ` +
        "Start as that user or as root, or choose another directory in HALYARD_HOME.",
    );
  }
  return {
    clusterDir,
    logFile: join(dataDir, "postgres.log"),
    passwordFile: join(dataDir, "superuser-password"),
    user,
  };
}

function linkedCluster(dataDir: string): string | undefined {
  try {
    return readlinkSync(join(dataDir, "cluster"));
  } catch (error) {
    if (hasCode(error, "ENOENT", "EINVAL")) return undefined;
    throw error;
  }
}

/** Returns the user that PostgreSQL runs as, and makes its data reachable for that user. */
function userForRoot(options: HomeOptions): SystemUser {
  const { dataDir } = options;
  const linked = linkedCluster(dataDir);
  if (linked !== undefined) {
    rejectCopyOfHome(dataDir, linked);
    mkdirSync(dirname(linked), { recursive: true, mode: 0o711 });
  }
  const clusterDir = linked ?? join(dataDir, "cluster");
  const owner = ownerOf(clusterDir);
  if (owner !== undefined) return checkedOwner(owner, clusterDir);
  const user = findUnprivilegedUser();
  // Other users may pass through to the cluster, which has its own permissions, but may not list the directory.
  chmodSync(dataDir, 0o711);
  if (linked === undefined && !userCan(user, "-x", dataDir)) linkToOpenDirectory(options, user);
  return user;
}

function checkedOwner(owner: SystemUser, clusterDir: string): SystemUser {
  if (owner.uid === 0) {
    throw new StartError(
      `PostgreSQL's data in ${clusterDir} belong to root, but PostgreSQL does not run as root. ` +
        `Change their owner: chown -R ${findUnprivilegedUser().name} '${clusterDir}'`,
    );
  }
  if (userCan(owner, "-w", clusterDir)) return owner;
  throw new StartError(
    `PostgreSQL's data in ${clusterDir} belong to the ${owner.name}, who cannot reach them there. ` +
      "Make the parent directories searchable (chmod o+x), or choose another directory in HALYARD_HOME.",
  );
}

function linkToOpenDirectory({ dataDir, location, onStep }: HomeOptions, user: SystemUser): void {
  const directory = join(location, `data-${randomUUID()}`);
  try {
    mkdirSync(location, { recursive: true, mode: 0o755 });
    mkdirSync(directory, { mode: 0o711 });
    if (!userCan(user, "-x", directory)) throw new Error(`${directory} is closed to ${user.name}`);
  } catch (cause) {
    throw new StartError(
      `PostgreSQL does not run as root, and its user ${user.name} can reach neither ` +
        `${dataDir} nor ${location}. Start as an ordinary user, choose a directory that is ` +
        "open to others in HALYARD_HOME, or set POSTGRES_URL to your own PostgreSQL server.",
      { cause },
    );
  }
  writeFileSync(join(directory, HOME_FILE), realpathSync(dataDir), { mode: 0o600 });
  symlinkSync(join(directory, "cluster"), join(dataDir, "cluster"));
  onStep(`keeping the data in ${directory}, where the user ${user.name} can reach them`);
}

/** Throws for a copied home, which has the link of the original. Two homes must not write to the same data. */
function rejectCopyOfHome(dataDir: string, clusterDir: string): void {
  const homeFile = join(dirname(clusterDir), HOME_FILE);
  const recorded = readIfPresent(homeFile);
  const home = realpathSync(dataDir);
  if (recorded === home || !existsSync(dirname(clusterDir))) return;
  if (recorded !== undefined && linkedCluster(recorded) === clusterDir) {
    throw new StartError(
      `${home} is a copy of ${recorded}, whose data are in ${clusterDir}. ` +
        `To start with empty data: rm '${join(home, "cluster")}'`,
    );
  }
  // The home was renamed.
  writeFileSync(homeFile, home, { mode: 0o600 });
}

function ownerOf(path: string): SystemUser | undefined {
  const status = unlessAbsent(() => statSync(path));
  return status && { name: `user with the id ${status.uid}`, uid: status.uid, gid: status.gid };
}
