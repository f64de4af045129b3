/** Errors caused by the gateway's own machine, such as too many open files. They do not concern the upstream. */
const localErrors = new Set(["EADDRNOTAVAIL", "EAGAIN", "EMFILE", "ENFILE", "ENOBUFS", "ENOMEM"]);

/** Returns whether the upstream accepts no connections, or its name does not resolve, as for a stopped container. */
export function isUnreachable({ syscall, code = "" }: NodeJS.ErrnoException): boolean {
  if (localErrors.has(code)) return false;
  return syscall === "connect" || syscall === "getaddrinfo" || code === "ECONNREFUSED";
}
