/** Errors of the gateway's own machine, such as too many open files. They say nothing about an upstream. */
const localErrors = new Set(["EADDRNOTAVAIL", "EAGAIN", "EMFILE", "ENFILE", "ENOBUFS", "ENOMEM"]);

/** Returns whether the upstream accepts no connections, or its name has no address, as that of a stopped container. */
export function isUnreachable({ syscall, code = "" }: NodeJS.ErrnoException): boolean {
  if (localErrors.has(code)) return false;
  return syscall === "connect" || syscall === "getaddrinfo" || code === "ECONNREFUSED";
}
