import { type BackgroundProcess } from "@halyard/local-backends";
/**
 * A build of the dashboard: a folder of the cache, named after the hash of its sources. A rename makes it appear
 * complete. Processes can therefore build at the same time, and no process reads half a build.
 */
type DashboardBuild = {
    folder: string;
    isNew: boolean;
};
type BuildOptions = {
    projectDir?: string;
    cacheDir?: string;
    logsDir?: string;
    onStarted?: (vite: BackgroundProcess) => void;
};
/**
 * Builds the dashboard, unless it was built from the same sources and packages before.
 *
 * @throws StartError with the end of the log if the build fails
 */
export declare function ensureDashboard(options?: BuildOptions): Promise<DashboardBuild>;
export {};
