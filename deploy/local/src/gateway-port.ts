import { type PortState, portState, StartError } from "@halyard/local-backends";

/** Checks the port before anything starts, because a port in use is the most common cause of a failed start. */
export async function checkGatewayPort(options: { host: string; port: number }): Promise<void> {
  if (options.port === 0) return;
  const problem = portProblem(options.port, await portState(options));
  if (problem !== undefined) throw new StartError(problem);
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
