"""Names that PyTorch 2.13 has in its modules and that were missing here when this list was made, by module. `tests/parity/test_missing.py` keeps it complete."""

from __future__ import annotations

__all__ = ["NAMES"]

NAMES: dict[str, frozenset[str]] = {
    "": frozenset(
        """
AVG AcceleratorError AggregationType AliasDb AnyType Argument ArgumentSpec AwaitType BFloat16Storage BenchmarkConfig
BenchmarkExecutionStats Block BoolStorage BoolType BufferDict ByteStorage CallStack Capsule CharStorage ClassType Code
CompilationUnit CompleteArgumentSpec ComplexDoubleStorage ComplexFloatStorage ComplexType ConcreteModuleType
ConcreteModuleTypeBuilder DeepCopyMemoTable DeserializationStorageContext DeviceObjType DictType DisableTorchFunction
DisableTorchFunctionSubclass DispatchKey DispatchKeySet DoubleStorage EnumType ErrorReport Event ExcludeDispatchKeyGuard
ExecutionPlan FatalError FileCheck FloatStorage FloatType FunctionSchema Future FutureType GradScaler Gradient Graph
GraphExecutorState HalfStorage IODescriptor InferredType IntStorage IntType InterfaceType JITException ListType
LiteScriptModule LockingLogger LoggerBase LongStorage ModuleDict Node NoneType NoopLogger NumberType OperatorInfo
OptionalType OutOfMemoryError PRIVATE_OPS ParameterDict PyObjectType PyTorchFileReader PyTorchFileWriter QInt32Storage
QInt8Storage QUInt2x4Storage QUInt4x2Storage QUInt8Storage RRefType SUM ScriptClass ScriptClassFunction ScriptDict
ScriptDictIterator ScriptDictKeyIterator ScriptFunction ScriptList ScriptListIterator ScriptMethod ScriptModule
ScriptModuleSerializer ScriptObject ScriptObjectProperty SerializationStorageContext ShortStorage StaticModule Storage
StorageBase Stream StreamObjType StringType SymBool SymBoolType SymFloat SymInt SymIntType Tag TensorType
ThroughputBenchmark TracingState TupleType Type USE_GLOBAL_DEPS USE_RTLD_GLOBAL_WITH_LIBTORCH UnionType Use Value
accelerator amp ao are_deterministic_algorithms_enabled autocast autocast_decrement_nesting autocast_increment_nesting
backends batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt batch_norm_gather_stats
batch_norm_gather_stats_with_counts batch_norm_stats batch_norm_update_stats bit bits16 bits1x8 bits2x4 bits4x2 bits8
ccol_indices_copy chalf choose_qparams_optimized classes clear_autocast_cache col_indices_copy compile
compiled_with_cxx11_abi compiler complex32 cond conv_tbc cpp crow_indices_copy cuda cudnn_affine_grid_generator
cudnn_batch_norm cudnn_convolution cudnn_convolution_add_relu cudnn_convolution_relu cudnn_convolution_transpose
cudnn_grid_sampler cudnn_is_acceptable dequantize distributed distributions dsmm empty_quantized export
fake_quantize_per_channel_affine fake_quantize_per_tensor_affine fbgemm_linear_fp16_weight
fbgemm_linear_fp16_weight_fp32_activation fbgemm_linear_int8_weight fbgemm_linear_int8_weight_fp32_activation
fbgemm_linear_quantize_weight fbgemm_pack_gemm_matrix_fp16 fbgemm_pack_quantized_matrix float4_e2m1fn_x2 float8_e4m3fn
float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu fork from_file func functional fused_moving_avg_obs_fake_quant
futures fx get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype get_autocast_ipu_dtype get_autocast_xla_dtype
get_deterministic_debug_mode get_device_module get_file_path get_float32_matmul_precision get_num_interop_threads
get_num_threads has_lapack has_mkl has_openmp has_spectral hsmm hspmm hub import_ir_module import_ir_module_from_buffer
indices_copy init_num_threads int1 int2 int3 int4 int5 int6 int7 int_repr is_autocast_cache_enabled is_autocast_cpu_enabled
is_autocast_enabled is_autocast_ipu_enabled is_autocast_xla_enabled is_deterministic_algorithms_warn_only_enabled
is_distributed is_inference is_vulkan_available is_warn_always_enabled jit legacy_contiguous_format lobpcg
merge_type_from_type_comment miopen_batch_norm miopen_convolution miopen_convolution_add_relu miopen_convolution_relu
miopen_convolution_transpose miopen_ctc_loss miopen_depthwise_convolution miopen_rnn mkldnn_adaptive_avg_pool2d
mkldnn_convolution mkldnn_linear_backward_weights mkldnn_max_pool2d mkldnn_max_pool3d mkldnn_rnn_layer monitor mps mtia
native_norm nested package parse_ir parse_schema parse_type_comment per_channel_affine per_channel_affine_float_qparams
per_channel_symmetric per_tensor_affine per_tensor_symmetric prepare_multiprocessing_environment
profiler_allow_cudagraph_cupti_lazy_reinit_cuda12 q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale
q_zero_point qint32 qint8 qscheme quantization quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic
quantized_batch_norm quantized_gru quantized_gru_cell quantized_lstm quantized_lstm_cell quantized_max_pool1d
quantized_max_pool2d quantized_max_pool3d quantized_rnn_relu_cell quantized_rnn_tanh_cell quasirandom quint2x4 quint4x2
quint8 resize_as_sparse_ row_indices_copy saddmm set_anomaly_enabled set_autocast_cache_enabled set_autocast_cpu_dtype
set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled set_autocast_gpu_dtype set_autocast_ipu_dtype
set_autocast_ipu_enabled set_autocast_xla_dtype set_autocast_xla_enabled set_deterministic_debug_mode
set_float32_matmul_precision set_flush_denormal set_num_interop_threads set_num_threads set_warn_always slice_inverse smm
sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_csc_tensor sparse_csr_tensor sspaddmm
sym_constrain_range sym_constrain_range_for_size sym_float sym_fresh_size sym_int sym_ite sym_max sym_min sym_not sym_sqrt
sym_sum testing thread_safe_generator torch_version uint1 uint2 uint3 uint4 uint5 uint6 uint7 unify_type_list
use_deterministic_algorithms values_copy version vmap wait while_loop windows xpu
        """.split()
    ),
    "nn": frozenset(
        """
AdaptiveLogSoftmaxWithLoss Container DataParallel GRU GRUCell LSTM LSTMCell LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d
LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d LazyInstanceNorm1d
LazyInstanceNorm2d LazyInstanceNorm3d LazyLinear LinearCrossEntropyLoss LinearCrossEntropyOptions MultiheadAttention RNN
RNNBase RNNCell RNNCellBase SyncBatchNorm Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder
TransformerEncoderLayer UninitializedBuffer UninitializedParameter common_types factory_kwargs grad intrinsic parallel qat
quantizable quantized
        """.split()
    ),
    "nn.functional": frozenset(
        """
BroadcastingList1 BroadcastingList2 BroadcastingList3 GRID_SAMPLE_INTERPOLATION_MODES GRID_SAMPLE_PADDING_MODES ScalingType
SwizzleType TYPE_CHECKING adaptive_avg_pool1d assert_int_or_pair avg_pool1d avg_pool2d avg_pool3d bilinear boolean_dispatch
celu_ channel_shuffle conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity
elu_ gelu hardshrink hardtanh_ leaky_relu_ linear logsigmoid native_channel_shuffle one_hot pairwise_distance pdist
pixel_shuffle pixel_unshuffle prelu relu_ reproducibility_notes rrelu_ scaled_dot_product_attention scaled_grouped_mm
scaled_mm selu_ softplus softshrink sparse_support_notes tf32_notes threshold_
        """.split()
    ),
    "nn.utils": frozenset(
        """
convert_conv2d_weight_memory_format convert_conv3d_weight_memory_format fuse_conv_bn_eval fuse_conv_bn_weights
fuse_linear_bn_eval fuse_linear_bn_weights fusion init memory_format parametrizations parametrize remove_spectral_norm
remove_weight_norm rnn skip_init spectral_norm stateless weight_norm
        """.split()
    ),
    "nn.modules": frozenset(
        """
AdaptiveLogSoftmaxWithLoss Container GRU GRUCell LSTM LSTMCell LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyConv1d
LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d LazyInstanceNorm1d LazyInstanceNorm2d
LazyInstanceNorm3d LazyLinear LinearCrossEntropyLoss LinearCrossEntropyOptions MultiheadAttention RNN RNNBase RNNCell
RNNCellBase SyncBatchNorm Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer
adaptive lazy linear_cross_entropy_options rnn transformer
        """.split()
    ),
    "optim": frozenset(
        """
ASGD Adadelta Adafactor Adagrad Adamax LBFGS Muon NAdam RAdam RMSprop Rprop SparseAdam swa_utils
swap_in_optimizer_params_and_state
        """.split()
    ),
    "optim.lr_scheduler": frozenset(
        """
ChainedScheduler CosineAnnealingWarmRestarts CyclicLR EPOCH_DEPRECATION_WARNING OneCycleLR TYPE_CHECKING inf
        """.split()
    ),
    "autograd": frozenset(
        """
DeviceType ProfilerActivity ProfilerConfig ProfilerEvent ProfilerState SavedTensor enforce_grad_layout_policy forward_ad
is_multithreading_enabled is_tensor_like is_view_replay_enabled kineto_available profiler_legacy
        """.split()
    ),
    "linalg": frozenset(
        """
common_notes
        """.split()
    ),
    "fft": frozenset(
        """
common_args factory_common_args
        """.split()
    ),
    "special": frozenset(
        """
common_args multi_dim_common
        """.split()
    ),
    "sparse": frozenset(
        """
BFloat16Tensor ByteTensor CharTensor HalfTensor IntTensor ShortTensor SparseSemiStructuredTensor
SparseSemiStructuredTensorCUSPARSELT SparseSemiStructuredTensorCUTLASS TYPE_CHECKING as_sparse_gradcheck
check_sparse_tensor_invariants log_softmax sampled_addmm semi_structured softmax spdiags spsolve to_sparse_semi_structured
        """.split()
    ),
    "masked": frozenset(
        """
MaskedTensor as_masked_tensor is_masked_tensor masked_tensor maskedtensor
        """.split()
    ),
    "utils": frozenset(
        """
ThroughputBenchmark backcompat backend_registration checkpoint cmake_prefix_path collect_env cpp_backtrace data
deterministic generate_methods_for_privateuse1_backend get_cpp_backtrace rename_privateuse1_backend set_module swap_tensors
throughput_benchmark weak
        """.split()
    ),
    "cpu": frozenset(
        """
amp get_capabilities
        """.split()
    ),
    "random": frozenset(
        """
TYPE_CHECKING thread_safe_generator
        """.split()
    ),
    "library": frozenset(
        """
EffectType OpOverload TYPE_CHECKING fallthrough_kernel get_ctx get_kernel register_autocast register_vmap triton_op
wrap_triton
        """.split()
    ),
    "overrides": frozenset(
        """
enable_reentrant_dispatch get_default_nowrap_functions get_ignored_functions get_overridable_functions get_testing_overrides
is_tensor_method_or_property redispatch_function
        """.split()
    ),
    "profiler": frozenset(
        """
Optimizer is_fbcode register_optimizer_step_post_hook
        """.split()
    ),
    "serialization": frozenset(
        """
INT_SIZE IS_WINDOWS LONG_SIZE LoadEndianness MAGIC_NUMBER MAP_PRIVATE MAP_SHARED PROTOCOL_VERSION SHORT_SIZE
STORAGE_KEY_SEPARATOR SourceChangeWarning Storage T UNSAFE_MESSAGE check_module_version_greater_or_equal
default_restore_location get_crc32_options get_default_load_endianness get_default_mmap_options get_source_lines_and_file
get_unsafe_globals_in_checkpoint location_tag mkdtemp normalize_storage_type set_crc32_options set_default_load_endianness
set_default_mmap_options skip_data storage_to_tensor_type validate_cuda_device validate_hpu_device
        """.split()
    ),
    "storage": frozenset(
        """
HAS_NUMPY Storage T TYPE_CHECKING
        """.split()
    ),
}
