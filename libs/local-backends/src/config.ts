/** Directories of programs that Debian keeps off an ordinary user's path, though everyone may run them. */
const SYSTEM_PROGRAM_DIRECTORIES = "/usr/local/sbin:/usr/sbin:/opt/homebrew/bin";

/** Where programs are looked for when a caller names no search path of its own. */
export function programSearchPath(): string {
  return `${process.env.PATH ?? "/usr/local/bin:/usr/bin:/bin"}:${SYSTEM_PROGRAM_DIRECTORIES}`;
}

/** The environment that apt-get gets: a proxy set for the user counts, the language does not. */
export function packageToolEnvironment(): NodeJS.ProcessEnv {
  return { ...process.env, LC_ALL: "C", DEBIAN_FRONTEND: "noninteractive" };
}
