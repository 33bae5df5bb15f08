"""The interface of mpi4py on SFM: ``from sfm_kernel.mpi import MPI``.

Programs for mpi4py run unchanged, and no MPI is installed. Importing this costs little: a process
joins the others at the first call that has to know them.

The names are made elsewhere, and ``as`` tells type checkers that they are for others. Classes say
that they are from here, so that what is pickled is found by its own name.
"""

# ruff: noqa: F403  # constants are many, and nothing else is there

from sfm_kernel.mpi.base.buffered import Attach_buffer as Attach_buffer
from sfm_kernel.mpi.base.buffered import Detach_buffer as Detach_buffer
from sfm_kernel.mpi.base.buffered import Flush_buffer as Flush_buffer
from sfm_kernel.mpi.base.buffered import Iflush_buffer as Iflush_buffer
from sfm_kernel.mpi.base.constants import *
from sfm_kernel.mpi.base.errhandler import ERRHANDLER_NULL as ERRHANDLER_NULL
from sfm_kernel.mpi.base.errhandler import ERRORS_ABORT as ERRORS_ABORT
from sfm_kernel.mpi.base.errhandler import ERRORS_ARE_FATAL as ERRORS_ARE_FATAL
from sfm_kernel.mpi.base.errhandler import ERRORS_RETURN as ERRORS_RETURN
from sfm_kernel.mpi.base.errhandler import Errhandler as Errhandler
from sfm_kernel.mpi.base.errors import Add_error_class as Add_error_class
from sfm_kernel.mpi.base.errors import Add_error_code as Add_error_code
from sfm_kernel.mpi.base.errors import Add_error_string as Add_error_string
from sfm_kernel.mpi.base.errors import Exception as Exception
from sfm_kernel.mpi.base.errors import Get_error_class as Get_error_class
from sfm_kernel.mpi.base.errors import Get_error_string as Get_error_string
from sfm_kernel.mpi.base.errors import Remove_error_class as Remove_error_class
from sfm_kernel.mpi.base.errors import Remove_error_code as Remove_error_code
from sfm_kernel.mpi.base.errors import Remove_error_string as Remove_error_string
from sfm_kernel.mpi.base.general import Alloc_mem as Alloc_mem
from sfm_kernel.mpi.base.general import Compute_dims as Compute_dims
from sfm_kernel.mpi.base.general import Finalize as Finalize
from sfm_kernel.mpi.base.general import Free_mem as Free_mem
from sfm_kernel.mpi.base.general import Get_abi_fortran_info as Get_abi_fortran_info
from sfm_kernel.mpi.base.general import Get_abi_info as Get_abi_info
from sfm_kernel.mpi.base.general import Get_abi_version as Get_abi_version
from sfm_kernel.mpi.base.general import Get_hw_resource_info as Get_hw_resource_info
from sfm_kernel.mpi.base.general import Get_library_version as Get_library_version
from sfm_kernel.mpi.base.general import Get_processor_name as Get_processor_name
from sfm_kernel.mpi.base.general import Get_version as Get_version
from sfm_kernel.mpi.base.general import Init as Init
from sfm_kernel.mpi.base.general import Init_thread as Init_thread
from sfm_kernel.mpi.base.general import Is_finalized as Is_finalized
from sfm_kernel.mpi.base.general import Is_initialized as Is_initialized
from sfm_kernel.mpi.base.general import Is_thread_main as Is_thread_main
from sfm_kernel.mpi.base.general import Pcontrol as Pcontrol
from sfm_kernel.mpi.base.general import Query_thread as Query_thread
from sfm_kernel.mpi.base.general import Wtick as Wtick
from sfm_kernel.mpi.base.general import Wtime as Wtime
from sfm_kernel.mpi.base.general import _addressof as _addressof
from sfm_kernel.mpi.base.general import _handleof as _handleof
from sfm_kernel.mpi.base.general import _set_abort_status as _set_abort_status
from sfm_kernel.mpi.base.general import _sizeof as _sizeof
from sfm_kernel.mpi.base.general import get_vendor as get_vendor
from sfm_kernel.mpi.base.info import INFO_ENV as INFO_ENV
from sfm_kernel.mpi.base.info import INFO_NULL as INFO_NULL
from sfm_kernel.mpi.base.info import Info as Info
from sfm_kernel.mpi.base.not_offered import FILE_NULL as FILE_NULL
from sfm_kernel.mpi.base.not_offered import WIN_NULL as WIN_NULL
from sfm_kernel.mpi.base.not_offered import Close_port as Close_port
from sfm_kernel.mpi.base.not_offered import File as File
from sfm_kernel.mpi.base.not_offered import Lookup_name as Lookup_name
from sfm_kernel.mpi.base.not_offered import Open_port as Open_port
from sfm_kernel.mpi.base.not_offered import Publish_name as Publish_name
from sfm_kernel.mpi.base.not_offered import Register_datarep as Register_datarep
from sfm_kernel.mpi.base.not_offered import Unpublish_name as Unpublish_name
from sfm_kernel.mpi.base.not_offered import Win as Win
from sfm_kernel.mpi.base.pickles import Pickle as Pickle
from sfm_kernel.mpi.base.pickles import pickle as pickle
from sfm_kernel.mpi.base.sessions import SESSION_NULL as SESSION_NULL
from sfm_kernel.mpi.base.sessions import Session as Session
from sfm_kernel.mpi.buffers.buffer import buffer as buffer
from sfm_kernel.mpi.buffers.special import BOTTOM as BOTTOM
from sfm_kernel.mpi.buffers.special import BUFFER_AUTOMATIC as BUFFER_AUTOMATIC
from sfm_kernel.mpi.buffers.special import IN_PLACE as IN_PLACE
from sfm_kernel.mpi.buffers.special import BottomType as BottomType
from sfm_kernel.mpi.buffers.special import BufferAutomaticType as BufferAutomaticType
from sfm_kernel.mpi.buffers.special import InPlaceType as InPlaceType
from sfm_kernel.mpi.comm.comm import COMM_NULL as COMM_NULL
from sfm_kernel.mpi.comm.comm import COMM_SELF as COMM_SELF
from sfm_kernel.mpi.comm.comm import COMM_WORLD as COMM_WORLD
from sfm_kernel.mpi.comm.comm import Comm as Comm
from sfm_kernel.mpi.comm.comm import Intracomm as Intracomm
from sfm_kernel.mpi.comm.groups import GROUP_EMPTY as GROUP_EMPTY
from sfm_kernel.mpi.comm.groups import GROUP_NULL as GROUP_NULL
from sfm_kernel.mpi.comm.groups import Group as Group
from sfm_kernel.mpi.comm.intercomm import Intercomm as Intercomm
from sfm_kernel.mpi.comm.topology_comms import Cartcomm as Cartcomm
from sfm_kernel.mpi.comm.topology_comms import Distgraphcomm as Distgraphcomm
from sfm_kernel.mpi.comm.topology_comms import Graphcomm as Graphcomm
from sfm_kernel.mpi.comm.topology_comms import Topocomm as Topocomm
from sfm_kernel.mpi.datatypes.addresses import Aint_add as Aint_add
from sfm_kernel.mpi.datatypes.addresses import Aint_diff as Aint_diff
from sfm_kernel.mpi.datatypes.addresses import Get_address as Get_address
from sfm_kernel.mpi.datatypes.datatype import Datatype as Datatype
from sfm_kernel.mpi.datatypes.datatype import _datatype_create as _datatype_create
from sfm_kernel.mpi.datatypes.datatype import _datatype_decode as _datatype_decode
from sfm_kernel.mpi.datatypes.datatype import _typealign as _typealign
from sfm_kernel.mpi.datatypes.datatype import _typecode as _typecode
from sfm_kernel.mpi.datatypes.predefined import AINT as AINT
from sfm_kernel.mpi.datatypes.predefined import BFLOAT16_T as BFLOAT16_T
from sfm_kernel.mpi.datatypes.predefined import BOOL as BOOL
from sfm_kernel.mpi.datatypes.predefined import BYTE as BYTE
from sfm_kernel.mpi.datatypes.predefined import C_BOOL as C_BOOL
from sfm_kernel.mpi.datatypes.predefined import C_COMPLEX as C_COMPLEX
from sfm_kernel.mpi.datatypes.predefined import C_DOUBLE_COMPLEX as C_DOUBLE_COMPLEX
from sfm_kernel.mpi.datatypes.predefined import C_FLOAT_COMPLEX as C_FLOAT_COMPLEX
from sfm_kernel.mpi.datatypes.predefined import C_LONG_DOUBLE_COMPLEX as C_LONG_DOUBLE_COMPLEX
from sfm_kernel.mpi.datatypes.predefined import CHAR as CHAR
from sfm_kernel.mpi.datatypes.predefined import CHARACTER as CHARACTER
from sfm_kernel.mpi.datatypes.predefined import COMPLEX as COMPLEX
from sfm_kernel.mpi.datatypes.predefined import COMPLEX4 as COMPLEX4
from sfm_kernel.mpi.datatypes.predefined import COMPLEX8 as COMPLEX8
from sfm_kernel.mpi.datatypes.predefined import COMPLEX16 as COMPLEX16
from sfm_kernel.mpi.datatypes.predefined import COMPLEX32 as COMPLEX32
from sfm_kernel.mpi.datatypes.predefined import COUNT as COUNT
from sfm_kernel.mpi.datatypes.predefined import CXX_BOOL as CXX_BOOL
from sfm_kernel.mpi.datatypes.predefined import CXX_DOUBLE_COMPLEX as CXX_DOUBLE_COMPLEX
from sfm_kernel.mpi.datatypes.predefined import CXX_FLOAT_COMPLEX as CXX_FLOAT_COMPLEX
from sfm_kernel.mpi.datatypes.predefined import CXX_LONG_DOUBLE_COMPLEX as CXX_LONG_DOUBLE_COMPLEX
from sfm_kernel.mpi.datatypes.predefined import DATATYPE_NULL as DATATYPE_NULL
from sfm_kernel.mpi.datatypes.predefined import DOUBLE as DOUBLE
from sfm_kernel.mpi.datatypes.predefined import DOUBLE_COMPLEX as DOUBLE_COMPLEX
from sfm_kernel.mpi.datatypes.predefined import DOUBLE_INT as DOUBLE_INT
from sfm_kernel.mpi.datatypes.predefined import DOUBLE_PRECISION as DOUBLE_PRECISION
from sfm_kernel.mpi.datatypes.predefined import F_BOOL as F_BOOL
from sfm_kernel.mpi.datatypes.predefined import F_COMPLEX as F_COMPLEX
from sfm_kernel.mpi.datatypes.predefined import F_DOUBLE as F_DOUBLE
from sfm_kernel.mpi.datatypes.predefined import F_DOUBLE_COMPLEX as F_DOUBLE_COMPLEX
from sfm_kernel.mpi.datatypes.predefined import F_FLOAT as F_FLOAT
from sfm_kernel.mpi.datatypes.predefined import F_FLOAT_COMPLEX as F_FLOAT_COMPLEX
from sfm_kernel.mpi.datatypes.predefined import F_INT as F_INT
from sfm_kernel.mpi.datatypes.predefined import FLOAT as FLOAT
from sfm_kernel.mpi.datatypes.predefined import FLOAT16_T as FLOAT16_T
from sfm_kernel.mpi.datatypes.predefined import FLOAT32_T as FLOAT32_T
from sfm_kernel.mpi.datatypes.predefined import FLOAT64_T as FLOAT64_T
from sfm_kernel.mpi.datatypes.predefined import FLOAT_INT as FLOAT_INT
from sfm_kernel.mpi.datatypes.predefined import INT as INT
from sfm_kernel.mpi.datatypes.predefined import INT8_T as INT8_T
from sfm_kernel.mpi.datatypes.predefined import INT16_T as INT16_T
from sfm_kernel.mpi.datatypes.predefined import INT32_T as INT32_T
from sfm_kernel.mpi.datatypes.predefined import INT64_T as INT64_T
from sfm_kernel.mpi.datatypes.predefined import INT_INT as INT_INT
from sfm_kernel.mpi.datatypes.predefined import INTEGER as INTEGER
from sfm_kernel.mpi.datatypes.predefined import INTEGER1 as INTEGER1
from sfm_kernel.mpi.datatypes.predefined import INTEGER2 as INTEGER2
from sfm_kernel.mpi.datatypes.predefined import INTEGER4 as INTEGER4
from sfm_kernel.mpi.datatypes.predefined import INTEGER8 as INTEGER8
from sfm_kernel.mpi.datatypes.predefined import INTEGER16 as INTEGER16
from sfm_kernel.mpi.datatypes.predefined import LOGICAL as LOGICAL
from sfm_kernel.mpi.datatypes.predefined import LOGICAL1 as LOGICAL1
from sfm_kernel.mpi.datatypes.predefined import LOGICAL2 as LOGICAL2
from sfm_kernel.mpi.datatypes.predefined import LOGICAL4 as LOGICAL4
from sfm_kernel.mpi.datatypes.predefined import LOGICAL8 as LOGICAL8
from sfm_kernel.mpi.datatypes.predefined import LOGICAL16 as LOGICAL16
from sfm_kernel.mpi.datatypes.predefined import LONG as LONG
from sfm_kernel.mpi.datatypes.predefined import LONG_DOUBLE as LONG_DOUBLE
from sfm_kernel.mpi.datatypes.predefined import LONG_DOUBLE_INT as LONG_DOUBLE_INT
from sfm_kernel.mpi.datatypes.predefined import LONG_INT as LONG_INT
from sfm_kernel.mpi.datatypes.predefined import LONG_LONG as LONG_LONG
from sfm_kernel.mpi.datatypes.predefined import OFFSET as OFFSET
from sfm_kernel.mpi.datatypes.predefined import PACKED as PACKED
from sfm_kernel.mpi.datatypes.predefined import REAL as REAL
from sfm_kernel.mpi.datatypes.predefined import REAL2 as REAL2
from sfm_kernel.mpi.datatypes.predefined import REAL4 as REAL4
from sfm_kernel.mpi.datatypes.predefined import REAL8 as REAL8
from sfm_kernel.mpi.datatypes.predefined import REAL16 as REAL16
from sfm_kernel.mpi.datatypes.predefined import SHORT as SHORT
from sfm_kernel.mpi.datatypes.predefined import SHORT_INT as SHORT_INT
from sfm_kernel.mpi.datatypes.predefined import SIGNED_CHAR as SIGNED_CHAR
from sfm_kernel.mpi.datatypes.predefined import SIGNED_INT as SIGNED_INT
from sfm_kernel.mpi.datatypes.predefined import SIGNED_LONG as SIGNED_LONG
from sfm_kernel.mpi.datatypes.predefined import SIGNED_LONG_LONG as SIGNED_LONG_LONG
from sfm_kernel.mpi.datatypes.predefined import SIGNED_SHORT as SIGNED_SHORT
from sfm_kernel.mpi.datatypes.predefined import SINT8_T as SINT8_T
from sfm_kernel.mpi.datatypes.predefined import SINT16_T as SINT16_T
from sfm_kernel.mpi.datatypes.predefined import SINT32_T as SINT32_T
from sfm_kernel.mpi.datatypes.predefined import SINT64_T as SINT64_T
from sfm_kernel.mpi.datatypes.predefined import TWOINT as TWOINT
from sfm_kernel.mpi.datatypes.predefined import UINT8_T as UINT8_T
from sfm_kernel.mpi.datatypes.predefined import UINT16_T as UINT16_T
from sfm_kernel.mpi.datatypes.predefined import UINT32_T as UINT32_T
from sfm_kernel.mpi.datatypes.predefined import UINT64_T as UINT64_T
from sfm_kernel.mpi.datatypes.predefined import UNSIGNED as UNSIGNED
from sfm_kernel.mpi.datatypes.predefined import UNSIGNED_CHAR as UNSIGNED_CHAR
from sfm_kernel.mpi.datatypes.predefined import UNSIGNED_INT as UNSIGNED_INT
from sfm_kernel.mpi.datatypes.predefined import UNSIGNED_LONG as UNSIGNED_LONG
from sfm_kernel.mpi.datatypes.predefined import UNSIGNED_LONG_LONG as UNSIGNED_LONG_LONG
from sfm_kernel.mpi.datatypes.predefined import UNSIGNED_SHORT as UNSIGNED_SHORT
from sfm_kernel.mpi.datatypes.predefined import WCHAR as WCHAR
from sfm_kernel.mpi.datatypes.predefined import _typedict as _typedict
from sfm_kernel.mpi.datatypes.predefined import _typedict_c as _typedict_c
from sfm_kernel.mpi.datatypes.predefined import _typedict_f as _typedict_f
from sfm_kernel.mpi.ops.op import Op as Op
from sfm_kernel.mpi.ops.predefined import BAND as BAND
from sfm_kernel.mpi.ops.predefined import BOR as BOR
from sfm_kernel.mpi.ops.predefined import BXOR as BXOR
from sfm_kernel.mpi.ops.predefined import LAND as LAND
from sfm_kernel.mpi.ops.predefined import LOR as LOR
from sfm_kernel.mpi.ops.predefined import LXOR as LXOR
from sfm_kernel.mpi.ops.predefined import MAX as MAX
from sfm_kernel.mpi.ops.predefined import MAXLOC as MAXLOC
from sfm_kernel.mpi.ops.predefined import MIN as MIN
from sfm_kernel.mpi.ops.predefined import MINLOC as MINLOC
from sfm_kernel.mpi.ops.predefined import NO_OP as NO_OP
from sfm_kernel.mpi.ops.predefined import OP_NULL as OP_NULL
from sfm_kernel.mpi.ops.predefined import PROD as PROD
from sfm_kernel.mpi.ops.predefined import REPLACE as REPLACE
from sfm_kernel.mpi.ops.predefined import SUM as SUM
from sfm_kernel.mpi.requests.grequest import Grequest as Grequest
from sfm_kernel.mpi.requests.message import MESSAGE_NO_PROC as MESSAGE_NO_PROC
from sfm_kernel.mpi.requests.message import MESSAGE_NULL as MESSAGE_NULL
from sfm_kernel.mpi.requests.message import Message as Message
from sfm_kernel.mpi.requests.prequest import Prequest as Prequest
from sfm_kernel.mpi.requests.request import REQUEST_NULL as REQUEST_NULL
from sfm_kernel.mpi.requests.request import Request as Request
from sfm_kernel.mpi.requests.status import Status as Status

memory = buffer


def _take_over() -> None:
    """Let classes say that they are from here."""
    for thing in list(globals().values()):
        if isinstance(thing, type) and thing.__module__.startswith(__name__.rpartition(".")[0]):
            thing.__module__ = __name__


_take_over()
