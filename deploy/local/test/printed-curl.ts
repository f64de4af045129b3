/** Parses the printed `curl` commands into requests, so that the tests do not need curl. */
export function printedCurlRequests(output: string): Request[] {
  const lines = output.split("\n").filter((line) => line.trim().startsWith("curl "));
  return lines.map((line) => {
    const words = [...line.trim().matchAll(/'([^']*)'|(\S+)/g)].map(
      ([, quoted, plain]) => quoted ?? plain ?? "",
    );
    const url = words[1] ?? "";
    const after = (flag: string) =>
      words.flatMap((word, index) => (word === flag ? [words[index + 1] ?? ""] : []));
    const headers = after("-H").map((header) => header.split(": ") as [string, string]);
    const [body] = after("-d");
    return new Request(url, { headers, ...(body === undefined ? {} : { method: "POST", body }) });
  });
}
