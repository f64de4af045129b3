/** Directories of programs that all users may run, but that are not on the default PATH of ordinary users. */
const SYSTEM_PROGRAM_DIRECTORIES = "/usr/local/sbin:/usr/sbin:/opt/homebrew/bin";

export function programSearchPath(): string {
  return `${process.env.PATH ?? "/usr/local/bin:/usr/bin:/bin"}:${SYSTEM_PROGRAM_DIRECTORIES}`;
}

/** Returns the environment for apt-get, with the user's proxy settings but without the user's language. */
export function packageToolEnvironment(): NodeJS.ProcessEnv {
  return { ...process.env, LC_ALL: "C", DEBIAN_FRONTEND: "noninteractive" };
}
