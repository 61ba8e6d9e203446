import Joi from 'joi';
import { ScanwireError } from '../errors.ts';
import { checked, nameSchema } from '../schema-validation.ts';

/** Another name of a workspace. */
export interface NewWorkspaceName {
    readonly to: string;
}

/** The rule of a {@link NewWorkspaceName}. */
export const newWorkspaceNameSchema: Joi.ObjectSchema<NewWorkspaceName> = Joi.object<NewWorkspaceName, true>({
    to: nameSchema.trim().required().description('Its new name, which no other workspace has'),
});

/** The name, trimmed. @throws ScanwireError `INVALID_INPUT`, field `to`. */
export function newWorkspaceName(to: string): string {
    return checked(newWorkspaceNameSchema, { to }).to;
}

/** What every store rejects with for a name that a workspace has already. */
export function workspaceNameTaken(to: string, cause?: unknown): ScanwireError {
    return new ScanwireError('CONFLICT', `There is a workspace ${JSON.stringify(to)} already`, { field: 'to', cause });
}

/** What everything rejects with for a name that no workspace has that is to be seen. */
export function unknownWorkspace(name: string, field: string = 'workspace'): ScanwireError {
    return new ScanwireError('NOT_FOUND', `Unknown workspace ${JSON.stringify(name)}`, { field });
}
