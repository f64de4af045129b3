/** An environment of a project. Each flag of the project has its own state in it. */
export type Environment = {
  id: string;
  projectId: string;
  name: string;
  /** Raised by every change. */
  version: number;
  createdAt: Date;
  updatedAt: Date;
};
