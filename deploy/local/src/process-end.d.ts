import { type ExitStatus } from "@halyard/local-backends";
/** Describes how a process ended, with the end of its log. */
export declare function describeDeath(name: string, status: ExitStatus, logFile: string): string;
/** Returns the last lines of a log, indented, with few frames of each stack. */
export declare function endOfLog(logFile: string): string;
