// Modules are numbered in the order of their use. The default, a hash of where they lie, makes the
// build in each folder another; what is kept in the repository is compared with what CI builds.
module.exports = { optimization: { moduleIds: 'natural', chunkIds: 'natural' } };
