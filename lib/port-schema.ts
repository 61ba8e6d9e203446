import Joi from 'joi';

/**
 * An object that a host passes in, such as a store: required, with these methods. Taken as it is, never copied as Joi copies
 * objects with keys, so that an instance of a class keeps its private state.
 */
export function portSchema(...methods: readonly string[]): Joi.ObjectSchema {
    return Joi.object()
        .required()
        .custom((port: object, helpers) => {
            const missing = methods.find((method) => typeof Reflect.get(port, method) !== 'function');
            return missing === undefined ? port : helpers.message({ custom: `{{#label}} lacks the method ${missing}` });
        });
}
