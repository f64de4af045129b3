/**
 * Returns a command that sends a request to the API of this server. It contains no key, but the name of a variable of
 * the shell.
 */
export function curl(path: string, body: string, token = "HALYARD_SERVER_KEY"): string {
  return `curl ${window.location.origin}${path} \\
  -H "Authorization: Bearer $${token}" \\
  -H 'Content-Type: application/json' \\
  -d '${body}'`;
}
