import Joi from 'joi';
import { checked } from '../checked.ts';

const schema = Joi.object<{ workspace: string }, true>({
    workspace: Joi.string()
        .trim()
        .max(255)
        .pattern(/^[^\p{Cc}\p{Cs}]*$/u)
        .messages({ 'string.pattern.base': '{{#label}} must not contain control characters' })
        .required(),
});

/**
 * The name of a workspace, trimmed: 1 to 255 characters, none of them a control character.
 *
 * @throws ScanwireError `INVALID_INPUT`, field `workspace`.
 */
export function workspaceName(name: unknown): string {
    return checked(schema, { workspace: name as string }).workspace;
}
