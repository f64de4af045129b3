import { type BackgroundProcess } from "@halyard/local-backends";
/**
 * Runs a program of the project to its end.
 *
 * @throws StartError with the end of its log if it fails
 */
export declare function runProgram({ projectDir, logsDir }: {
    projectDir: string;
    logsDir: string;
}, options: {
    what: string;
    program: string;
    args?: string[];
    folder?: string;
    logName: string;
    environment: Record<string, string>;
    onStarted?: ((process: BackgroundProcess) => void) | undefined;
}): Promise<void>;
