import { findFreePort, type PortState, portState, StartError } from "@halyard/local-backends";

/**
 * Returns the port of the gateway; for 0, a free one, because the services need its number before the gateway starts. A
 * port in use is the most common cause of a failed start, so it is checked before anything starts.
 */
export async function chooseGatewayPort(options: { host: string; port: number }): Promise<number> {
  const { port } = options;
  if (port === 0) return findFreePort(options.host);
  const problem = portProblem(port, await portState(options));
  if (problem !== undefined) throw new StartError(problem);
  return port;
}

/** Returns a message that states the problem and the remedy, or undefined if the port is free. */
export function portProblem(port: number, state: PortState): string | undefined {
  const another = `PORT=${port === 8080 ? 8081 : 8080} npm start`;
  if (state === "taken") {
    return `Port ${port} is taken by another program. Stop that program, or choose another port: ${another}`;
  }
  if (state === "forbidden") {
    return `Port ${port} is reserved for root on this system. Choose a port from 1024: ${another}`;
  }
  return undefined;
}
