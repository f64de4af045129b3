import { accessSync, constants, existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { hasCode } from "@halyard/local-backends";
import { StartError } from "./start-error.ts";

/** PostgreSQL's own user must be able to pass through to its data when root starts us. */
const OPEN_TO_PASS = 0o711;

/** Files and directories that a start writes to. PostgreSQL's start checks PostgreSQL's data. */
const WRITTEN = ["credentials.json", "logs", "nats", "sdk-edge"];

/** Creates the home unless it exists, and checks that this user can write to it and to what it contains. */
export function makeHome(home: string): void {
  try {
    makeDirectory(home);
    // The dot makes a file fail, too.
    accessSync(`${home}/.`, constants.W_OK | constants.X_OK);
    for (const path of WRITTEN.map((name) => join(home, name))) {
      if (existsSync(path)) accessSync(path, constants.R_OK | constants.W_OK);
    }
  } catch (cause) {
    throw new StartError(
      `The directory ${home} cannot be written to (${cause instanceof Error ? cause.message : cause}). ` +
        wayOut(home),
      { cause },
    );
  }
}

/** A start as another user, such as root, leaves data that this user cannot write. */
function wayOut(home: string): string {
  return existsSync(join(home, "credentials.json"))
    ? `It contains the data of another user's start. Make them yours: sudo chown -R "$(id -un)" '${home}'`
    : "Choose another one: HALYARD_HOME=~/halyard npm start";
}

/** `mkdirSync` with `recursive` never returns where the file system answers ENOENT, as /proc does. */
function makeDirectory(path: string): void {
  if (existsSync(path)) return;
  makeDirectory(dirname(path));
  try {
    mkdirSync(path, { mode: OPEN_TO_PASS });
  } catch (error) {
    // Another start has created it meanwhile.
    if (!hasCode(error, "EEXIST")) throw error;
  }
}
