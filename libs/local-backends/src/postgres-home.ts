import { chmodSync, existsSync, mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { claimDataElsewhere, findDataElsewhere, reportAbandonedData } from "./data-elsewhere.ts";
import { PostgresDataUnreachableError } from "./errors.ts";
import { findUnprivilegedUser, runsAsRoot, type SystemUser, userCan } from "./unprivileged-user.ts";

/** Where a server's files are, and as whom it runs: undefined means as the present user. */
export type PostgresHome = {
  clusterDir: string;
  logFile: string;
  passwordFile: string;
  user: SystemUser | undefined;
};

type Wish = { dataDir: string; place: string; onStep: (text: string) => void };

/**
 * `dataDir` stays ours and holds the log and the superuser's password; only the directory `cluster`
 * belongs to the user that PostgreSQL runs as. It lies in `dataDir`, or, where that user cannot get
 * there, in a place open to all.
 */
export function settlePostgresHome(wish: Wish): PostgresHome {
  if (!runsAsRoot()) return settleForOrdinaryUser(wish);
  const home = settleForRoot(wish);
  // Only after this home has claimed its data, which a renamed home does under its new path.
  reportAbandonedData(wish.place, wish.onStep);
  return home;
}

function settleForOrdinaryUser({ dataDir, place }: Wish): PostgresHome {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const clusterDir = join(dataDir, "cluster");
  const owner = ownerOf(clusterDir);
  const elsewhere = findDataElsewhere(dataDir, place);
  if ((owner !== undefined && owner.uid !== process.getuid?.()) || elsewhere !== undefined) {
    throw new PostgresDataUnreachableError(
      `The data in ${elsewhere ?? clusterDir} belong to another user. ` +
        "Start as the user that started it before (or as root), or choose another directory in HALYARD_HOME.",
    );
  }
  return describeHome(dataDir, { clusterDir, user: undefined });
}

function settleForRoot({ dataDir, place }: Wish): PostgresHome {
  mkdirSync(dataDir, { recursive: true, mode: 0o711 });
  const clusterHere = join(dataDir, "cluster");
  const owner = ownerOf(clusterHere);
  if (owner !== undefined) return homeOfExistingData(dataDir, clusterHere, owner);
  const user = findUnprivilegedUser();
  if (findDataElsewhere(dataDir, place) === undefined) {
    // Others may pass through to the cluster, which is closed in turn, but not look around.
    chmodSync(dataDir, 0o711);
    if (userCan(user, "-x", dataDir))
      return describeHome(dataDir, { clusterDir: clusterHere, user });
  }
  const clusterDir = join(claimElsewhere(dataDir, place, user), "cluster");
  return describeHome(dataDir, { clusterDir, user: ownerOf(clusterDir) ?? user });
}

function homeOfExistingData(dataDir: string, clusterDir: string, owner: SystemUser): PostgresHome {
  if (owner.uid === 0) {
    throw new PostgresDataUnreachableError(
      `PostgreSQL's data in ${clusterDir} belong to root, as whom it does not run. ` +
        `Give them to its own user: chown -R ${findUnprivilegedUser().name} '${clusterDir}'`,
    );
  }
  if (userCan(owner, "-w", clusterDir)) return describeHome(dataDir, { clusterDir, user: owner });
  throw new PostgresDataUnreachableError(
    `PostgreSQL's data in ${clusterDir} belong to the ${owner.name}, who cannot reach them there. ` +
      "Open the directories above for passing through (chmod o+x), or choose another directory in HALYARD_HOME.",
  );
}

function claimElsewhere(dataDir: string, place: string, user: SystemUser): string {
  let directory: string;
  try {
    directory = claimDataElsewhere(dataDir, place);
  } catch (cause) {
    throw unreachablePlace({ dataDir, place, user, cause });
  }
  if (!userCan(user, "-x", directory)) throw unreachablePlace({ dataDir, place, user });
  return directory;
}

function unreachablePlace(problem: {
  dataDir: string;
  place: string;
  user: SystemUser;
  cause?: unknown;
}): PostgresDataUnreachableError {
  return new PostgresDataUnreachableError(
    `PostgreSQL does not run as root, and its user ${problem.user.name} can reach neither ` +
      `${problem.dataDir} nor ${problem.place}. Start as an ordinary user, choose a directory that is ` +
      "open to others in HALYARD_HOME, or name a PostgreSQL server of your own in POSTGRES_URL.",
    { cause: problem.cause },
  );
}

function describeHome(
  dataDir: string,
  found: { clusterDir: string; user: SystemUser | undefined },
): PostgresHome {
  return {
    ...found,
    logFile: join(dataDir, "postgres.log"),
    passwordFile: join(dataDir, "superuser-password"),
  };
}

function ownerOf(path: string): SystemUser | undefined {
  if (!existsSync(path)) return undefined;
  const { uid, gid } = statSync(path);
  return { name: `user with the id ${uid}`, uid, gid };
}
